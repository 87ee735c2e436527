/** Makes the answer of a tool: text that a model reads, ours first and the command's apart from it, and the same as data. Pure. */
import { type Change, errorLines, type Result, resultLines, SandboxError } from '../core.ts'
import type { Output } from './outputs.ts'
import type { CallToolResult } from './sdk.ts'
import { type ResultOf, STREAMS } from './tools.ts'

/** Changes that an answer lists. */
const MOST_LISTED = 200

type Shown = Pick<Result, 'ok' | 'exitCode' | 'signal' | 'reason' | 'durationMs'>

/** One line on how the command ended. */
function endLine({ exitCode, signal, reason, durationMs }: Shown): string {
  const seconds = `${(durationMs / 1000).toFixed(2)} s`
  if (reason === 'exit') return `exited with ${exitCode} after ${seconds}`
  if (reason === 'signal') return `ended by ${signal} after ${seconds}`
  return `ended by the sandbox (${reason}) after ${seconds}`
}

const block = (text: string): CallToolResult['content'][number] => ({ type: 'text', text })

export const answer = (
  lines: readonly string[],
  structuredContent: Record<string, unknown>,
  outputs: readonly string[] = [],
): CallToolResult => ({
  // The command's words are in separate blocks: none of them can pass for one of our blocks.
  content: [lines.join('\n'), ...outputs].filter((text) => text !== '').map(block),
  structuredContent,
})

/** A result drops output that `read_output` still has: that it did, and how it would not, is untrue for a client. */
function withoutDropped({ message, hints, ...rest }: Result): Result {
  return {
    ...rest,
    message: message.replace(/(?:^|; )output kept \S+, dropped \S+$/, ''),
    hints: hints.filter((hint) => !hint.startsWith('raise --output ')),
  }
}

export function commandAnswer(ran: Result, output: Output): CallToolResult {
  const result = withoutDropped(ran)
  const shown = { stdout: output.show('stdout'), stderr: output.show('stderr') }
  const outputs = STREAMS.map((name) => (shown[name].text === '' ? '' : `${name}:\n${shown[name].text}`))
  const { ok, exitCode, signal, reason, message, durationMs, denials, limits, usage, warnings, hints, error } = result
  const data: ResultOf<'run_command'> = {
    ...{ ok, exitCode, signal, reason, message, durationMs, ...shown },
    ...(STREAMS.some((name) => shown[name].gap !== undefined) && { output: output.id }),
    denials: denials.map((denial) => ({ ...denial })),
    ...(result.cow !== undefined && { changes: changesData(result.cow.id, result.changes ?? [], result.cow.omitted) }),
    ...{ limits: { ...limits }, usage: { ...usage }, warnings: [...warnings], hints: [...hints] },
    ...(error !== undefined && { error }),
  }
  const lines = [...(error === undefined ? [endLine(result)] : []), ...resultLines(result)]
  return { ...answer(lines, data, outputs), ...(error !== undefined && { isError: true }) }
}

export function changesData(id: string, changes: readonly Change[], omitted = 0) {
  const list = changes.slice(0, MOST_LISTED).map(({ path, kind, type, from, protected: isProtected, conflict }) => ({
    ...{ path, kind, type },
    ...(from !== undefined && { from }),
    ...(isProtected && { protected: isProtected }),
    ...(conflict && { conflict }),
  }))
  return { id, list, omitted: omitted + changes.length - list.length }
}

/** The sandbox refused, or a call came too late: the model reads why, and what would help. */
export function errorAnswer(error: unknown): CallToolResult {
  if (!(error instanceof SandboxError)) throw error
  return { content: [block(errorLines(error).join('\n'))], isError: true }
}
