/**
 * `llm-do logs [NAME]`: what a command in the background has printed, on the streams that it was printed to.
 *
 * Edge: the clock.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { SandboxError } from '../../error.ts'
import { jsonLine } from '../../report/json.ts'
import { directoryOfNamed, findNamed, lastNamed, type NamedSandbox, stateOf } from '../../run/named-sandboxes.ts'
import { bytesOf, type LogLine, LogReader } from '../../run/output-log.ts'
import type { Environment } from '../call.ts'
import { currentDirectory } from '../current-directory.ts'
import { writeBytes, writeStdout } from '../stdio.ts'
import { type Subcommand, subcommand } from '../subcommand.ts'

const PAUSE_MS = 100

const show = (line: LogLine, isJson: boolean): Promise<void> =>
  isJson ? writeStdout(jsonLine(line)) : writeBytes(line.stream, bytesOf(line))

function isRunning(env: Environment, { name }: NamedSandbox): boolean {
  try {
    return stateOf(env, findNamed(env, name)) === 'running'
  } catch (error) {
    if (error instanceof SandboxError) return false // It was stopped, and is forgotten.
    throw error
  }
}

const parsed = subcommand('logs', async ({ operands: [word], flags }, call) => {
  const { env } = call
  const sandbox = word === undefined ? lastNamed(env, currentDirectory(call)) : findNamed(env, word)
  const reader = new LogReader(directoryOfNamed(env, sandbox.name))
  for (let isLast = false; !isLast; ) {
    // Asked before the look: what was printed before the end is in the log by then.
    isLast = flags['follow'] !== true || !isRunning(env, sandbox)
    for (const line of reader.next()) await show(line, flags['json'] === true)
    if (!isLast) await sleep(PAUSE_MS)
  }
  return 0
})

export const logs: Subcommand = (call) =>
  parsed({ ...call, text: call.text.map((word) => (word === '-f' ? '--follow' : word)) })
