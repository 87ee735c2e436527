/** The launch file: a plan for the native runner, as words ended by NUL. Pure. */
import { LAUNCH_FILE_MAGIC, VERBS } from '../../contract.ts'
import { launchEntries, type Verb } from '../../text/launch-entries.ts'

export type LaunchRecord = readonly [Verb, ...(string | number)[]]

/** @throws RangeError for a record that the reader would refuse: a defect of the caller, never of a user */
export function writeLaunchFile(records: readonly LaunchRecord[]): Uint8Array {
  const words = [LAUNCH_FILE_MAGIC, ...records.flatMap(checkedWords), 'end']
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
  const lines = launchEntries(bytes).map((entry) => entry.map(printWord).join(' '))
  return `${lines.join('\n')}\n`
}

function printWord(word: string): string {
  return /^[\w./:=,@%+*~-]+$/.test(word) ? word : JSON.stringify(word)
}
