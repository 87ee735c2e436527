// Prints a run of the tests: a line for each stage, the slowest files, the failures, and the sum as the last line.
const isTerminal = process.stderr.isTTY === true

export const print = (text) => process.stdout.write(`${text}\n`)

/** One line that is written over, at a terminal only. */
export function progress(text) {
  if (isTerminal) process.stderr.write(`\r\x1b[K${text.slice(0, (process.stderr.columns ?? 80) - 1)}`)
}

const seconds = (ms) => `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`

export function printStage(name, title, { passed, failed, skipped }, ms) {
  progress('')
  const counts = `${passed} passed, ${failed} failed${skipped === 0 ? '' : `, ${skipped} skipped`}`
  print(`${name.padEnd(9)} ${counts.padEnd(34)} ${seconds(ms).padStart(7)}  ${title}`)
}

/** Seen at once: a run that is stopped before its end has said what failed until then. */
export const printFailed = ({ file, user, counts }) => {
  if (counts.failed === 0) return
  progress('')
  print(`  FAILED ${file} (${user})`)
}

export function printSlowest(results, count = 10) {
  const slowest = results.toSorted((one, other) => other.seconds - one.seconds).slice(0, count)
  if (slowest.length === 0) return
  print(
    `slowest   ${slowest.map(({ file, user, seconds }) => `${file.replace(/^tests\/|\.system\.test\.ts$/g, '')} ${user} ${seconds.toFixed(0)} s`).join(', ')}`,
  )
}

/** @returns the exit status: 0 only when nothing failed and something passed */
export function printSum({ passed, failed, failures }) {
  for (const failure of failures) print(`FAILED ${failure}`)
  print(`${passed} passed, ${failed} failed`)
  return failed === 0 && passed > 0 ? 0 : 1
}
