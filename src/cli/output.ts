/**
 * Writing to our own stdout and stderr. A reader that went away is no failure of ours: what is left is not written, the
 * exit status stays.
 *
 * Edge: stdout, stderr.
 */

/** Resolves when the text is with the kernel, or when nobody reads any more. */
function write(stream: NodeJS.WriteStream, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    if (stream.destroyed) {
      resolve()
      return
    }
    stream.write(text, (error) => {
      const code = (error as NodeJS.ErrnoException | null | undefined)?.code
      if (error && code !== 'EPIPE' && code !== 'ERR_STREAM_DESTROYED') reject(error)
      else resolve()
    })
  })
}

/** Answers on stdout: one text, line feeds included. */
export function say(text: string): Promise<void> {
  return write(process.stdout, text)
}

/** Messages on stderr, one line each. */
export function tell(lines: readonly string[]): Promise<void> {
  return lines.length === 0 ? Promise.resolve() : write(process.stderr, `${lines.join('\n')}\n`)
}

/** A pipe that broke is reported to the write itself; without a listener node would also end the process. */
export function tolerateClosedOutput(): void {
  const ignoreBroken = (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
  }
  process.stdout.on('error', ignoreBroken)
  process.stderr.on('error', ignoreBroken)
}
