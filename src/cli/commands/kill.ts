/** `llm-do kill [ID...]`: ends runs and everything they started. An operand is an ID, the unique beginning of one, or a name. */
import { SandboxError } from '../../error.ts'
import { currentDirectory } from '../current-directory.ts'
import { eachWord } from '../each-word.ts'
import { isOwn, listRuns, notAlive, ownRun, type RunLine, runRunsProgram } from '../run-records.ts'
import { subcommand } from '../subcommand.ts'
import { usageError } from '../usage-error.ts'

function lastHere(runs: readonly RunLine[], directory: string): string {
  const here = runs.filter((run) => isOwn(run) && run.directory === directory)
  const [last] = here.toSorted((one, other) => other.started - one.started)
  if (last !== undefined) return last.id
  throw new SandboxError('RUN_NOT_FOUND', 'no run of this directory is alive.', { hint: 'llm-do ps' })
}

export const kill = subcommand('kill', async ({ operands }, call) => {
  const { env } = call
  const signal = operands.find((word) => /^-\d+$/.test(word)) // commander takes it for a number, not for an option
  if (signal !== undefined)
    throw usageError(
      `${signal}: kill ends a run with all its processes and takes no signal.`,
      ['llm-do kill', ...operands.filter((word) => word !== signal)].join(' '),
    )
  const runs = listRuns(env)
  const words = operands.length === 0 ? [lastHere(runs, currentDirectory(call))] : operands
  return await eachWord(words, async (word) => {
    const { id } = ownRun(env, word, runs)
    if ((await runRunsProgram(env, 'kill', id)).status !== 0) throw notAlive(word)
    return `run ${id} was ended`
  })
})
