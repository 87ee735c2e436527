/**
 * `--apply ask`: the person decides when the command has ended.
 * Edge: the controlling terminal (os/ask-terminal.ts).
 */
import type { PendingChanges } from '../cow/pending.ts'
import { askTerminal, hasTerminal } from '../os/ask-terminal.ts'
import { neutralise } from '../report/text.ts'
import { usageError } from './usage-error.ts'

const ANSWERS: Readonly<Record<string, boolean>> = { y: true, yes: true, n: false, no: false, '': false }

/** @throws SandboxError USAGE without a terminal to ask at: before the command has run */
export function askToApply(isForPeople: boolean): (waiting: PendingChanges) => Promise<boolean> {
  if (!isForPeople || !hasTerminal())
    throw usageError(
      `--apply ask needs a terminal${isForPeople ? '' : ', and no --json'}.`,
      'llm-do exec --apply on-success, or llm-do apply afterwards',
    )
  return async ({ message }) =>
    (await askTerminal({
      text: `llm-do: ${neutralise(message)}\nllm-do: apply? [y/N] `,
      read: (line) => ANSWERS[line.trim().toLowerCase()],
      again: 'yes or no? ',
      silence: false,
    })) ?? false
}
