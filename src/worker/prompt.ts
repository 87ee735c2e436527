/**
 * Asks the person at the terminal. The command's stdin is not touched where the terminal can be opened by itself: a pipe into
 * the command must not answer for the person.
 * Edge: reads and writes the controlling terminal.
 */
import { openSync } from 'node:fs'
import { createInterface } from 'node:readline/promises'
import { ReadStream, WriteStream } from 'node:tty'
import { type Answer, readAnswer } from './approval.ts'

/** Wrong answers before silence counts as no. */
const MOST_QUESTIONS = 5

/** @returns undefined when there is no terminal; `no` at the end of input or after too many words that are no answer */
export async function askOnTerminal(text: string): Promise<Answer | undefined> {
  const terminal = openTerminal()
  if (terminal === undefined) return undefined
  const { input, output } = terminal
  const reader = createInterface({ input, output, terminal: false })
  const lines = reader[Symbol.asyncIterator]()
  try {
    output.write(text)
    for (let questions = 0; questions < MOST_QUESTIONS; questions += 1) {
      const line = await lines.next()
      if (line.done === true) return 'no'
      const answer = readAnswer(line.value)
      if (answer !== undefined) return answer
      output.write('yes, session, no or quit? ')
    }
    return 'no'
  } finally {
    reader.close()
    input.destroy()
    output.destroy()
  }
}

function openTerminal(): { readonly input: ReadStream; readonly output: WriteStream } | undefined {
  try {
    return { input: new ReadStream(openSync('/dev/tty', 'r')), output: new WriteStream(openSync('/dev/tty', 'w')) }
  } catch {
    return undefined // ENXIO, ENOENT: no controlling terminal, so no person to answer.
  }
}
