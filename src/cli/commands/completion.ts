/** `llm-do completion bash|zsh|fish`. */
import { bashCompletion, fishCompletion, zshCompletion } from '../completion.ts'
import { writeStdout } from '../stdio.ts'
import { subcommand } from '../subcommand.ts'

const SHELLS: Readonly<Record<string, () => string>> = {
  bash: bashCompletion,
  zsh: zshCompletion,
  fish: fishCompletion,
}

export const completion = subcommand('completion', async ({ operands: [shell = ''] }) => {
  await writeStdout(SHELLS[shell]?.() ?? '')
  return 0
})
