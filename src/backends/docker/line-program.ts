/**
 * A program of the host that works next to a container: it reads a launch file, reports in lines of JSON, and ends after its input.
 * Edge: processes, pipes.
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { closeSync } from 'node:fs'
import type { Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { mappingIn, openUnlinked } from '../run-kit.ts'

export interface LineProgram<Line> {
  readonly file: string
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** It is descriptor 3 of the program. */
  readonly launchFile: Uint8Array
  readonly onLine: (line: Line | Record<string, never>) => void
  /** Its stdout has ended, or it could not be started. */
  readonly over: () => void
}

const MESSAGE_BYTES = 4_096

/** @returns the process, and the end of what it printed on stderr */
export function startLineProgram<Line>({ file, argv, env, launchFile, onLine, over }: LineProgram<Line>): {
  readonly child: ChildProcessWithoutNullStreams
  readonly message: () => string
} {
  const fd = openUnlinked(launchFile)
  const child = spawn(file, argv, {
    env: { ...env },
    cwd: '/',
    // A new session: the terminal's Ctrl-C must not reach it.
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe', fd],
  }) as ChildProcessWithoutNullStreams
  closeSync(fd)
  // A program that only waits for our end keeps this process no longer than the run.
  for (const each of [child, child.stdin as Socket, child.stderr as Socket]) each.unref()
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on('error', () => stream.destroy())
  const received = { message: '' }
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    received.message = `${received.message}${text}`.slice(-MESSAGE_BYTES)
  })
  const lines = createInterface({ input: child.stdout })
  lines.on('line', (line) => onLine((mappingIn(line) ?? {}) as Line | Record<string, never>))
  lines.once('close', over)
  child.once('error', over)
  return { child, message: () => received.message }
}
