/**
 * Asks the person at the terminal. Where the terminal can be opened, the command's stdin is not touched: a pipe into
 * the command must not answer for the person.
 * Edge: reads and writes the controlling terminal.
 */
import { openSync } from 'node:fs'
import { createInterface } from 'node:readline/promises'
import { ReadStream, WriteStream } from 'node:tty'

export interface Asked<T> {
  readonly text: string
  /** @returns undefined for any other text than an answer */
  readonly read: (line: string) => T | undefined
  /** Printed after an invalid answer. */
  readonly again: string
  /** At the end of input, and after too many lines that are no answer. */
  readonly silence: T
}

/** Wrong answers before silence. */
const MOST_QUESTIONS = 5

/** @returns undefined without a terminal */
export async function askTerminal<T>({ text, read, again, silence }: Asked<T>): Promise<T | undefined> {
  const terminal = openTerminal()
  if (terminal === undefined) return undefined
  const { input, output } = terminal
  const reader = createInterface({ input, output, terminal: false })
  const lines = reader[Symbol.asyncIterator]()
  try {
    output.write(text)
    for (let questions = 0; questions < MOST_QUESTIONS; questions += 1) {
      const line = await lines.next()
      if (line.done === true) return silence
      const answer = read(line.value)
      if (answer !== undefined) return answer
      output.write(again)
    }
    return silence
  } finally {
    reader.close()
    input.destroy()
    output.destroy()
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
