/**
 * The socket on which our init in a container tells how the command ended, see native/container-init.c.
 * Edge: a UNIX socket in the user's runtime directory.
 *
 * It is shown in the container, so only the first connection counts: init makes it before the command exists, and nobody is
 * listening any more when the command could look for it.
 */
import { chmodSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname } from 'node:path'
import { makeDirectories } from '../host/directory.ts'

export interface InitReport {
  /** Whether init could reach us: it then tells the end, unless it was killed itself. */
  readonly connected: boolean
  /** The line of native/status.c; empty when it did not come. */
  readonly line: string
}

export interface ReportSocket {
  /** After the container's end. */
  readonly report: () => Promise<InitReport>
  readonly close: () => void
}

/** Longer than any line of status.c. */
const MOST_BYTES = 65_536
/** Any id may be inside the container, and the directory is ours alone. */
const ANYBODY = 0o666

/** @returns undefined where no socket can be made: the run then goes without */
export async function openReport(path: string): Promise<ReportSocket | undefined> {
  try {
    await makeDirectories(dirname(path), 0o700)
    return await listen(path)
  } catch {
    return undefined // Less is told then, and nothing is less closed.
  }
}

function listen(path: string): Promise<ReportSocket> {
  const heard: { bytes: Buffer; closed?: Promise<void> } = { bytes: Buffer.alloc(0) }
  const server = createServer((socket) => {
    if (heard.closed !== undefined) return void socket.destroy()
    server.close()
    heard.closed = new Promise((resolve) => socket.once('close', () => resolve()))
    socket.on('data', (chunk) => {
      heard.bytes = Buffer.concat([heard.bytes, chunk]).subarray(0, MOST_BYTES)
    })
    // A reset says the same as an end: nothing more comes.
    socket.on('error', () => socket.destroy())
  })
  const close = (): void => {
    server.close()
    rmSync(path, { force: true })
  }
  const report = async (): Promise<InitReport> => {
    // Connections come in a later turn than the end of a process that made them.
    await new Promise((resolve) => setImmediate(resolve))
    await heard.closed
    return { connected: heard.closed !== undefined, line: heard.bytes.toString('utf8') }
  }
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, () => {
      chmodSync(path, ANYBODY)
      resolve({ report, close })
    })
  })
}
