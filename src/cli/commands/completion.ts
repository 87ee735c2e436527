/** `llm-do completion bash|zsh|fish`. */
import { COMPLETIONS } from '../completion.ts'
import { writeStdout } from '../stdio.ts'
import { subcommand } from '../subcommand.ts'

export const completion = subcommand('completion', async ({ operands: [shell = ''] }) => {
  await writeStdout(COMPLETIONS[shell as keyof typeof COMPLETIONS])
  return 0
})
