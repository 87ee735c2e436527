/** `llm-do kill ID...`: ends runs and everything they started. An operand is an ID, the unique beginning of one, or a name. */
import { neutralise } from '../../report/text.ts'
import { runIdOf } from '../../run/named-sandboxes.ts'
import { meantBy } from '../../text/shortened-id.ts'
import type { Environment } from '../call.ts'
import { isOwn, listRuns, type RunLine, runRunsProgram } from '../run-records.ts'
import { writeStderr } from '../stdio.ts'
import { FOUND_PROBLEMS, subcommand } from '../subcommand.ts'

/** @returns what is wrong, for people; undefined when the run was ended */
async function killOne(operand: string, runs: readonly RunLine[], env: Environment): Promise<string | undefined> {
  const word = neutralise(operand)
  const own = runs.filter(isOwn)
  const [run, ...others] = meantBy(operand, own)
  if (others.length > 0) {
    const ids = [run, ...others].map((one) => one?.id)
    return `llm-do: ${word} is the beginning of several runs, and none was ended: ${ids.join(', ')}`
  }
  if (run !== undefined && (await runRunsProgram(env, 'kill', run.id)).status === 0) return undefined
  return meantBy(operand, runs).length > 0 && run === undefined
    ? `llm-do: run ${word} is another user's, who alone can end it (see: llm-do ps)`
    : `llm-do: no run ${word} is alive (see: llm-do ps)`
}

export const kill = subcommand('kill', async ({ operands }, { env }) => {
  const runs = listRuns(env)
  const problems = await Promise.all(operands.map((operand) => killOne(runIdOf(env, operand), runs, env)))
  const lines = problems.filter((problem) => problem !== undefined)
  await writeStderr(lines)
  return lines.length === 0 ? 0 : FOUND_PROBLEMS
})
