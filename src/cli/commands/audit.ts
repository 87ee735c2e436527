/**
 * `llm-do audit verify FILE`: follows the chain of an audit log.
 *
 * Edge: the log file, by report/audit-file.ts.
 */
import { verifyAudit } from '../../report/audit-file.ts'
import { neutralise } from '../../report/text.ts'
import { writeStderr, writeStdout } from '../stdio.ts'
import { FOUND_PROBLEMS, subcommand } from '../subcommand.ts'

/** More broken lines than this say nothing new. */
const SHOWN_PROBLEMS = 20

export const audit = subcommand('audit', async ({ operands: [file = ''] }) => {
  const { lines, last, problems } = await verifyAudit(file)
  const counted = `${lines} ${lines === 1 ? 'line' : 'lines'}`
  if (problems.length === 0) {
    await writeStdout(`ok: ${counted}, last ${last}\n`)
    return 0
  }
  const shown = problems.slice(0, SHOWN_PROBLEMS).map((problem) => `${file}: ${problem}`)
  const more = problems.length - shown.length
  await writeStderr([...shown, ...(more > 0 ? [`and ${more} more`] : [])].map((line) => `llm-do: ${neutralise(line)}`))
  await writeStdout(`broken: ${counted}, ${problems.length} of them wrong\n`)
  return FOUND_PROBLEMS
})
