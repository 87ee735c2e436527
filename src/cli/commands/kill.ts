/** `llm-do kill ID...`: ends runs and everything they started. An ID may be shortened while it means one run. */
import { neutralise } from '../../report/text.ts'
import type { Environment } from '../call.ts'
import { listOwnRuns, runRunsProgram } from '../run-records.ts'
import { writeStderr } from '../stdio.ts'
import { FOUND_PROBLEMS, subcommand } from '../subcommand.ts'

/** The ids that an operand means: one where it is an id, else all that begin so. */
function meant(operand: string, ids: readonly string[]): readonly string[] {
  if (operand === '' || ids.includes(operand)) return ids.filter((id) => id === operand)
  return ids.filter((id) => id.startsWith(operand))
}

/** @returns what is wrong, for people; undefined when the run was ended */
async function killOne(operand: string, ids: readonly string[], env: Environment): Promise<string | undefined> {
  const [id, ...others] = meant(operand, ids)
  if (others.length > 0)
    return `llm-do: ${neutralise(operand)} may be any of ${[id, ...others].join(', ')}; nothing of them was ended`
  const isEnded = id !== undefined && (await runRunsProgram(env, 'kill', id)).status === 0
  return isEnded ? undefined : `llm-do: no run ${neutralise(operand)} is alive (see: llm-do ps)`
}

export const kill = subcommand('kill', async ({ operands }, { env }) => {
  const ids = (await listOwnRuns(env)).map(({ id }) => id)
  const problems = await Promise.all(operands.map((operand) => killOne(operand, ids, env)))
  const lines = problems.filter((problem) => problem !== undefined)
  await writeStderr(lines)
  return lines.length === 0 ? 0 : FOUND_PROBLEMS
})
