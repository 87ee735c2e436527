/**
 * Serves the one client that has started this process, on stdin and stdout. When stdin ends, or stdout has lost its reader, every run
 * and this process end.
 * Edge: stdin, stdout.
 */
import type { Runner } from './runner.ts'
import { StdioServerTransport } from './sdk.ts'
import { serverFor } from './server.ts'
import { Session } from './session.ts'

/** @returns when the client has gone or the signal has come, and nothing runs any more: runs whose changes wait */
export async function serveStdio(runner: Runner, signal: AbortSignal): Promise<readonly string[]> {
  const session = new Session(runner)
  const server = serverFor(session, runner)
  const gone = new Promise<void>((resolve) => {
    for (const event of ['end', 'close', 'error']) process.stdin.once(event, () => resolve())
    process.stdout.on('error', () => resolve())
    signal.addEventListener('abort', () => resolve())
    server.onclose = resolve
  })
  await server.connect(new StdioServerTransport())
  await gone
  const waiting = await session.close()
  await server.close()
  return waiting === undefined ? [] : [waiting]
}
