/** `llm-do kill ID...`: ends runs and everything they started. */
import { neutralise } from '../../report/text.ts'
import { runRunsProgram } from '../run-records.ts'
import { writeStderr } from '../stdio.ts'
import { FOUND_PROBLEMS, subcommand } from '../subcommand.ts'

export const kill = subcommand('kill', async ({ operands }, { env }) => {
  const replies = await Promise.all(operands.map(async (id) => ({ id, ...(await runRunsProgram(env, 'kill', id)) })))
  const missing = replies.filter(({ status }) => status !== 0)
  await writeStderr(missing.map(({ id }) => `llm-do: no run ${neutralise(id)} is alive (see: llm-do ps)`))
  return missing.length === 0 ? 0 : FOUND_PROBLEMS
})
