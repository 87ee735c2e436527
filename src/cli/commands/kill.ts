/** `llm-do kill [ID...]`: ends runs and everything they started. An operand is an ID, the unique beginning of one, or a name. */
import { SandboxError } from '../../error.ts'
import { neutralise } from '../../report/text.ts'
import { runIdOf } from '../../run/named-sandboxes.ts'
import { meantBy } from '../../text/shortened-id.ts'
import type { Environment } from '../call.ts'
import { currentDirectory } from '../current-directory.ts'
import { isOwn, listRuns, type RunLine, runRunsProgram } from '../run-records.ts'
import { writeStderr } from '../stdio.ts'
import { FAILED, subcommand } from '../subcommand.ts'

interface Killed {
  readonly isEnded: boolean
  /** For people. */
  readonly line: string
}

async function killOne(operand: string, runs: readonly RunLine[], env: Environment): Promise<Killed> {
  const word = neutralise(operand)
  const [run, ...others] = meantBy(operand, runs.filter(isOwn))
  if (others.length > 0) {
    const ids = [run, ...others].map((one) => one?.id)
    return not(`${word} is the beginning of several runs, and none was ended: ${ids.join(', ')}`)
  }
  if (run !== undefined && (await runRunsProgram(env, 'kill', run.id)).status === 0)
    return { isEnded: true, line: `llm-do: run ${run.id} was ended` }
  return meantBy(operand, runs).length > 0 && run === undefined
    ? not(`run ${word} is another user's, who alone can end it (see: llm-do ps)`)
    : not(`no run ${word} is alive (see: llm-do ps)`)
}

const not = (why: string): Killed => ({ isEnded: false, line: `llm-do: ${why}` })

/** The last run of this directory. */
function lastHere(runs: readonly RunLine[], directory: string): string {
  const here = runs.filter((run) => isOwn(run) && run.directory === directory)
  const [last] = here.toSorted((one, other) => other.started - one.started)
  if (last !== undefined) return last.id
  throw new SandboxError('RUN_NOT_FOUND', 'no run of this directory is alive.', { hint: 'llm-do ps' })
}

export const kill = subcommand('kill', async ({ operands }, call) => {
  const { env } = call
  const runs = listRuns(env)
  const words = operands.length === 0 ? [lastHere(runs, currentDirectory(call))] : operands
  const ends = await Promise.all(words.map((word) => killOne(runIdOf(env, word), runs, env)))
  await writeStderr(ends.map(({ line }) => line))
  return ends.every(({ isEnded }) => isEnded) ? 0 : FAILED
})
