/** `llm-do kill ID...`: ends runs and everything they started. An ID may be shortened while it means one run, or be the name of one. */
import { neutralise } from '../../report/text.ts'
import { listNamed } from '../../run/named-sandboxes.ts'
import type { Environment } from '../call.ts'
import { isOwn, listRuns, type RunLine, runRunsProgram } from '../run-records.ts'
import { writeStderr } from '../stdio.ts'
import { FOUND_PROBLEMS, subcommand } from '../subcommand.ts'

/** The runs that an operand means: one where it is an id, else all that begin so. */
function meant(operand: string, runs: readonly RunLine[]): readonly RunLine[] {
  const same = runs.filter(({ id }) => id === operand)
  return same.length > 0 || operand === '' ? same : runs.filter(({ id }) => id.startsWith(operand))
}

/** @returns what is wrong, for people; undefined when the run was ended */
async function killOne(operand: string, runs: readonly RunLine[], env: Environment): Promise<string | undefined> {
  const word = neutralise(operand)
  const own = runs.filter(isOwn)
  const [run, ...others] = meant(operand, own)
  if (others.length > 0) {
    const ids = meant(operand, own).map(({ id }) => id)
    return `llm-do: ${word} is the beginning of several runs, and none was ended: ${ids.join(', ')}`
  }
  if (run !== undefined && (await runRunsProgram(env, 'kill', run.id)).status === 0) return undefined
  return meant(operand, runs).length > 0 && run === undefined
    ? `llm-do: run ${word} is another user's, who alone can end it (see: llm-do ps)`
    : `llm-do: no run ${word} is alive (see: llm-do ps)`
}

export const kill = subcommand('kill', async ({ operands }, { env }) => {
  const runs = listRuns(env)
  const named = new Map(listNamed(env).map(({ name, runId }) => [name, runId]))
  const problems = await Promise.all(operands.map((operand) => killOne(named.get(operand) ?? operand, runs, env)))
  const lines = problems.filter((problem) => problem !== undefined)
  await writeStderr(lines)
  return lines.length === 0 ? 0 : FOUND_PROBLEMS
})
