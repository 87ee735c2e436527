/**
 * Serves the one client that has started this process, on stdin and stdout. When stdin ends, or stdout has lost its reader, every run
 * and this process end.
 * Edge: stdin, stdout.
 */
import type { Runner } from './runner.ts'
import { ErrorCode, StdioServerTransport } from './sdk.ts'
import { serverFor } from './server.ts'
import { Session } from './session.ts'

/** Answers a line that cannot be read. The SDK drops it silently: JSON-RPC 2.0, section 5.1. */
function unreadable({ name }: Error): object | undefined {
  const error = {
    SyntaxError: { code: ErrorCode.ParseError, message: 'expected a line of JSON' },
    ZodError: { code: ErrorCode.InvalidRequest, message: 'expected a message of JSON-RPC 2.0' },
  }[name]
  return error && { jsonrpc: '2.0', id: null, error }
}

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
  const transport = new StdioServerTransport()
  server.onerror = (error) => {
    const refused = unreadable(error)
    if (refused !== undefined) void transport.send(refused as never)
  }
  await server.connect(transport)
  await gone
  const waiting = await session.close()
  await server.close()
  return waiting === undefined ? [] : [waiting]
}
