/**
 * `llm-do report FILE... >report.html`: a page about the runs of audit logs and of results of batches. Memory holds one line of them.
 *
 * Edge: the files, by report/audit-file.ts; stdout.
 */
import { resolve } from 'node:path'
import { SandboxError } from '../../error.ts'
import { CHAIN_START, checkAuditLine, sha256 } from '../../report/audit.ts'
import { readLines } from '../../report/audit-file.ts'
import { jsonInHtml, readReportPage } from '../../report/report-page.ts'
import { runRow } from '../../report/run-row.ts'
import { neutralise } from '../../report/text.ts'
import { currentDirectory } from '../current-directory.ts'
import { writeStderr, writeStdout } from '../stdio.ts'
import { FOUND_PROBLEMS, subcommand } from '../subcommand.ts'
import { usageError } from '../usage-error.ts'

/** More lines than this that are wrong say nothing new. */
const SHOWN_PROBLEMS = 20
/** Characters that are written at once. */
const CHUNK = 256 * 1024

interface Found {
  rows: number
  /** The first of them; all are counted. */
  readonly problems: string[]
  problemCount: number
}

function note(found: Found, problem: string): void {
  found.problemCount += 1
  if (found.problems.length < SHOWN_PROBLEMS) found.problems.push(problem)
}

/** The runs of a file as JSON, each with a comma. Lines that are no runs, and breaks of the chain of an audit log, are noted. */
async function* rowsOf(file: string, name: string, found: Found): AsyncGenerator<string> {
  let [lines, previous, isLog] = [0, CHAIN_START, true]
  for await (const line of readLines(file)) {
    lines += 1
    const text = line.toString('utf8')
    const row = runRow(text)
    // Results of a batch have no chain; the first line says what the file is.
    if (lines === 1) isLog = row === undefined || text.includes('"prev":"')
    const broken = isLog ? checkAuditLine(line, previous) : undefined
    const problem = row === undefined ? 'neither a run of an audit log nor one of a batch' : broken
    if (problem !== undefined) note(found, `${name}: line ${lines}: ${problem}`)
    previous = sha256(line)
    if (row === undefined) continue
    found.rows += 1
    yield `${jsonInHtml(row)},\n`
  }
}

async function* chunksOf(pieces: AsyncIterable<string>): AsyncGenerator<string> {
  let text = ''
  for await (const piece of pieces) {
    text += piece
    if (text.length < CHUNK) continue
    yield text
    text = ''
  }
  if (text !== '') yield text
}

/** Nothing is written before the first run is found. */
async function* pageOf(files: readonly string[], cwd: string, found: Found): AsyncGenerator<string> {
  const { head, tail } = readReportPage()
  for (const file of files)
    for await (const row of rowsOf(resolve(cwd, file), file, found))
      yield found.rows === 1 ? `${head}{"runs":[${row}` : row
  if (found.rows === 0) throw noRuns(files, found)
  const problems = found.problems.map(neutralise)
  const rest = { files: files.map(neutralise), problems, problemCount: found.problemCount }
  yield `null],"about":${jsonInHtml(rest)}}${tail}`
}

const noRuns = (files: readonly string[], { problems }: Found): SandboxError =>
  new SandboxError('POLICY_INVALID', `${files.join(', ')}: no runs (expected lines of an audit log or of a batch)`, {
    problems,
    hint: 'llm-do exec --audit FILE -- COMMAND, or: llm-do batch TASKS --results FILE',
  })

export const report = subcommand('report', async ({ operands }, call) => {
  if (process.stdout.isTTY)
    throw usageError('report: expected a file on stdout, got a terminal.', 'llm-do report FILE > report.html')
  const found: Found = { rows: 0, problems: [], problemCount: 0 }
  for await (const chunk of chunksOf(pageOf(operands, currentDirectory(call), found))) await writeStdout(chunk)
  const more = found.problemCount - found.problems.length
  const lines = [...found.problems, ...(more > 0 ? [`and ${more} more`] : [])]
  await writeStderr(lines.map((line) => `llm-do: ${neutralise(line)}`))
  return found.problemCount === 0 ? 0 : FOUND_PROBLEMS
})
