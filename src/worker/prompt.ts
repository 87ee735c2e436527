/**
 * Asks the person at the terminal about one command.
 * Edge: the controlling terminal (os/ask-terminal.ts).
 */
import { askTerminal } from '../os/ask-terminal.ts'
import { type Answer, readAnswer } from './approval.ts'

/** @returns undefined without a terminal; `no` at the end of input or after too many other words */
export function askOnTerminal(text: string): Promise<Answer | undefined> {
  return askTerminal<Answer>({ text, read: readAnswer, again: 'yes, session, no or quit? ', silence: 'no' })
}
