/**
 * The socket on which our init in a container tells how the command ended, see native/tools/container-init.c.
 * Edge: a UNIX socket in the user's runtime directory.
 *
 * It is shown in the container, so only the first connection counts: init makes it before the command exists, and the socket
 * no longer listens when the command could look for it.
 */
import { chmodSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname } from 'node:path'
import { makeDirectories } from '../run-kit.ts'

export interface InitReport {
  /** Whether init could reach us: it then tells the end, unless it was killed itself. */
  readonly connected: boolean
  /** The line of native/lib/status.c; empty when it did not come. */
  readonly line: string
}

export interface ReportSocket {
  /** After the container's end. */
  readonly report: () => Promise<InitReport>
  readonly close: () => void
}

/** Longer than any line of status.c. */
const MOST_BYTES = 65_536
/** Milliseconds after the end. */
const LATEST_MS = 2_000
/** Any id may be inside the container, and the directory is ours alone. */
const WRITABLE_BY_ALL = 0o666

/** Others may go through it: for a directory that is itself shown in a container. The one above is ours alone. */
export const SHOWN_MODE = 0o711

/**
 * @param mode of the socket's directory
 * @returns undefined where no socket can be made: the run then goes without
 */
export async function openReport(path: string, mode = 0o700): Promise<ReportSocket | undefined> {
  try {
    makeDirectories(dirname(dirname(path)), 0o700)
    makeDirectories(dirname(path), mode)
    chmodSync(dirname(path), mode)
    return await listen(path)
  } catch {
    return undefined // The result says less then; the walls are the same.
  }
}

function listen(path: string): Promise<ReportSocket> {
  const received: { bytes: Buffer; closed?: Promise<void> } = { bytes: Buffer.alloc(0) }
  const server = createServer((socket) => {
    if (received.closed !== undefined) return void socket.destroy()
    server.close()
    received.closed = new Promise((resolve) => socket.once('close', () => resolve()))
    socket.on('data', (chunk) => {
      received.bytes = Buffer.concat([received.bytes, chunk]).subarray(0, MOST_BYTES)
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
    // Init reports before the container ends; only a client that lost its daemon ends before the container does.
    await Promise.race([received.closed, new Promise((resolve) => void setTimeout(resolve, LATEST_MS).unref())])
    return { connected: received.closed !== undefined, line: received.bytes.toString('utf8') }
  }
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, () => {
      chmodSync(path, WRITABLE_BY_ALL)
      resolve({ report, close })
    })
  })
}
