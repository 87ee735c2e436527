/**
 * Writes to our own stdout and stderr. A reader that went away is not our failure: the rest is not written, the
 * exit status stays.
 *
 * Edge: stdout, stderr.
 */
import { closeSync } from 'node:fs'
import { SandboxError } from '../error.ts'

const GONE = new Set(['EPIPE', 'ERR_STREAM_DESTROYED'])

function failed(stream: NodeJS.WriteStream, { code, message }: NodeJS.ErrnoException): SandboxError {
  const name = stream === process.stdout ? 'stdout' : 'stderr'
  return new SandboxError('OUTPUT_FAILED', `${name} cannot be written: ${code ?? message}`, {
    hint: `look at where ${name} leads`,
  })
}

/**
 * Resolves when the kernel has the text, or when the reader is gone.
 * @throws SandboxError OUTPUT_FAILED for any other reason not to take it, e.g. a full disk
 */
function write(stream: NodeJS.WriteStream, text: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    tolerateClosed(stream)
    if (stream.destroyed) {
      resolve()
      return
    }
    stream.write(text, (error) => {
      if (error && !GONE.has((error as NodeJS.ErrnoException).code ?? '')) reject(failed(stream, error))
      else resolve()
    })
  })
}

/** Answers on stdout: one text, line feeds included. */
export function writeStdout(text: string | Uint8Array): Promise<void> {
  return write(process.stdout, text)
}

/** Exactly these, on either stream. */
export function writeBytes(stream: 'stdout' | 'stderr', bytes: Uint8Array): Promise<void> {
  return write(process[stream], bytes)
}

/** Messages on stderr, one line each. */
export function writeStderr(lines: readonly string[]): Promise<void> {
  return lines.length === 0 ? Promise.resolve() : write(process.stderr, `${lines.join('\n')}\n`)
}

/**
 * Our last step. When it ends, node gives a terminal that is open the modes that it found at its start; but the runner has put them back already,
 * and by now they may be those of another program of the same job, such as a pager.
 */
export function leaveStreams(): void {
  for (const fd of [0, 1, 2])
    try {
      closeSync(fd)
    } catch {
      // The caller has not opened it.
    }
}

const reportedByWrite = () => undefined

/**
 * Every failure is reported to the callback of its write; without a listener node would also end the process. Only streams that are
 * written to are made: that takes node milliseconds.
 */
function tolerateClosed(stream: NodeJS.WriteStream): void {
  if (!stream.listeners('error').includes(reportedByWrite)) stream.on('error', reportedByWrite)
}
