/** Entries of a launch file (native/contract.yaml) and of what has its form: the record of a layer, plans of the launch cache. Pure. */
import { LAUNCH_FILE_MAGIC, VERBS } from '../contract.ts'

export type Verb = keyof typeof VERBS
export type LaunchEntry = readonly [verb: Verb, ...words: string[]]

/**
 * @param encoding latin1 keeps the bytes of paths that are not UTF-8
 * @throws for what does not reach its last entry; behind that there may be a seal
 */
export function launchEntries(bytes: Uint8Array, encoding: 'utf8' | 'latin1' = 'utf8'): readonly LaunchEntry[] {
  const [magic, ...words] = Buffer.from(bytes).toString(encoding).split('\0')
  if (magic !== LAUNCH_FILE_MAGIC) throw new Error('not a launch file')
  const entries: LaunchEntry[] = []
  for (let at = 0; words[at] !== 'end'; ) {
    const verb = words[at] as Verb
    if (!Object.hasOwn(VERBS, verb)) throw new Error('launch file: unknown verb, or no end')
    const next = at + 1 + VERBS[verb]
    entries.push(words.slice(at, next) as unknown as LaunchEntry)
    at = next
  }
  return entries
}
