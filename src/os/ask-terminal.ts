/**
 * Asks the person at the terminal. Where the terminal can be opened, the command's stdin is not touched: a pipe into
 * the command must not answer for the person.
 * Edge: reads and writes the controlling terminal.
 */
import { closeSync, constants, openSync, readSync } from 'node:fs'
import { createInterface } from 'node:readline/promises'
import { ReadStream, WriteStream } from 'node:tty'

export interface Asked<T> {
  readonly text: string
  /** @returns undefined for any other text than an answer */
  readonly read: (line: string) => T | undefined
  /** Printed after an invalid answer. */
  readonly again: string
  /** At the end of input, after too many lines that are no answer, and when the signal comes first. */
  readonly silence: T
  readonly signal?: AbortSignal
}

/** Wrong answers before silence. */
const MOST_QUESTIONS = 5

/** Ends a sequence of a command's that is half written, takes back its colours and its scroll region, and clears what is below. */
const CLEAN = '\u0018\u001b\\\u001b[!p\u001b[0m\n\u001b[J'

/**
 * Only text that is typed after the question answers it: an earlier command may have asked something else, and left the answer unread.
 * @returns undefined without a terminal
 */
export async function askTerminal<T>(asked: Asked<T>): Promise<T | undefined> {
  const { text, read, again, silence, signal } = asked
  const terminal = openTerminal()
  if (terminal === undefined) return undefined
  const { input, output } = terminal
  forgetTyped(input)
  const reader = createInterface({ input, output, terminal: false })
  const lines = reader[Symbol.asyncIterator]()
  const stop = (): void => reader.close()
  signal?.addEventListener('abort', stop)
  if (signal?.aborted === true) stop()
  try {
    output.write(`${CLEAN}${text}`)
    for (let questions = 0; questions < MOST_QUESTIONS; questions += 1) {
      const line = await lines.next()
      if (line.done === true) return silence
      const answer = read(line.value)
      if (answer !== undefined) return answer
      output.write(again)
    }
    return silence
  } finally {
    signal?.removeEventListener('abort', stop)
    reader.close()
    input.destroy()
    output.destroy()
  }
}

/** Drops typed text. In raw mode the kernel gives out a line that is not finished, too. */
function forgetTyped(input: ReadStream): void {
  const fd = openSync('/dev/tty', constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
  input.setRawMode(true)
  try {
    for (const bytes = Buffer.alloc(4096); readSync(fd, bytes) > 0; );
  } catch {
    // EAGAIN: nothing more.
  } finally {
    input.setRawMode(false)
    closeSync(fd)
  }
}

export function hasTerminal(): boolean {
  const terminal = openTerminal()
  terminal?.input.destroy()
  terminal?.output.destroy()
  return terminal !== undefined
}

function openTerminal(): { readonly input: ReadStream; readonly output: WriteStream } | undefined {
  try {
    return { input: new ReadStream(openSync('/dev/tty', 'r')), output: new WriteStream(openSync('/dev/tty', 'w')) }
  } catch {
    return undefined // ENXIO, ENOENT: no controlling terminal, so no person to answer.
  }
}
