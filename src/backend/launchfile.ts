/**
 * The launch file: what the native chain is told, as words ended by NUL. native/launchfile.h holds the same table;
 * tests/backend/launchfile.test.ts compares the two.
 */

/** Verb -> number of words. The order of records that build the tree is the order of building. */
export const VERBS = {
  engine: 1,
  word: 1,
  identity: 3,
  hostname: 1,
  net: 1,
  directory: 2,
  symlink: 2,
  file: 3,
  tmpfs: 4,
  bind: 2,
  zone: 6,
  protect: 3,
  git: 3,
  linked: 2,
  readonly: 1,
  mask: 1,
  landlock: 1,
  seccomp: 1,
  rlimit: 3,
  workdir: 1,
  terminal: 1,
  affinity: 1,
  cgroup: 1,
  set: 2,
  narrow: 2,
  watch: 1,
  'cpu-time': 1,
  deadline: 1,
  runs: 1,
  profile: 1,
  // Only in cached files, see launch-cache/cached-launch.ts.
  check: 1,
  key: 1,
  at: 2,
  content: 2,
  variable: 2,
  locale: 2,
  inherit: 1,
  pool: 1,
  capture: 1,
  result: 2,
} as const

export type Verb = keyof typeof VERBS
export type LaunchRecord = readonly [Verb, ...(string | number)[]]

/** The first word of every launch file; another version of the format has another one. */
export const MAGIC = 'llm-do-launch-2'

/** @throws RangeError for a record that the reader would refuse: a defect of the caller, never of a user */
export function writeLaunchFile(records: readonly LaunchRecord[]): Uint8Array {
  const words = [MAGIC, ...records.flatMap(checkedWords), 'end']
  return Buffer.from(`${words.join('\0')}\0`, 'utf8')
}

function checkedWords(record: LaunchRecord): readonly string[] {
  const words = record.map(String)
  const [verb] = record
  if (words.length !== VERBS[verb] + 1) throw new RangeError(`launch file: ${verb} takes ${VERBS[verb]} words`)
  if (words.some((word) => word.includes('\0'))) throw new RangeError(`launch file: ${verb}: a word contains NUL`)
  return words
}

/** One record a line for people and golden files; words with blanks or control characters are quoted as JSON. */
export function printLaunchFile(bytes: Uint8Array): string {
  const words = Buffer.from(bytes).toString('utf8').split('\0').slice(1)
  const lines: string[] = []
  for (let at = 0; at < words.length; ) {
    const verb = words[at] as Verb
    if (!(verb in VERBS)) break
    const length = VERBS[verb] + 1
    lines.push(
      words
        .slice(at, at + length)
        .map(printWord)
        .join(' '),
    )
    at += length
  }
  return `${lines.join('\n')}\n`
}

function printWord(word: string): string {
  return /^[\w./:=,@%+*~-]+$/.test(word) ? word : JSON.stringify(word)
}
