/**
 * `llm-do why [ID]`: a failed run once more, watched, with its writable directories as copies that are thrown away.
 * Edge: the working directory, which becomes that of the run.
 */
import { discardLayer, findPlace } from '../../cow/layers.ts'
import { SandboxError } from '../../error.ts'
import { hasBash } from '../../host/program.ts'
import type { PolicyLayer } from '../../policy/layer.ts'
import type { Policy } from '../../policy/policy.ts'
import { shellWord } from '../../report/hints.ts'
import { printJson } from '../../report/json.ts'
import type { Result } from '../../report/result.ts'
import { denialText, neutralise } from '../../report/text.ts'
import { asCopies, filesWithoutCopy } from '../../run/copies.ts'
import { type FailedRun, failedRuns, findFailedRun } from '../../run/failed-runs.ts'
import type { ExecOptions } from '../../run/plan-run.ts'
import type { Call } from '../call.ts'
import { readCommandLine } from '../exec-arguments.ts'
import { writeStdout } from '../stdio.ts'
import { subcommand } from '../subcommand.ts'
import { readRequest, runRecorded } from './exec.ts'

const lineOf = ({ words }: FailedRun): string => neutralise(words.map(shellWord).join(' '))

const explaining = (directory: string): PolicyLayer => ({
  layer: 'flag',
  source: 'llm-do why',
  directory,
  values: { explain: true },
})

const again =
  (directory: string, seen: (policy: Policy) => void) =>
  ({ apply: _, onPlanned: __, narrow, layers = [], ...options }: ExecOptions): ExecOptions => ({
    ...options,
    layers: [...layers, explaining(directory)],
    narrow: async (grant, request) => {
      const policy = (await narrow?.(grant, request)) ?? grant
      seen(policy)
      return asCopies(policy)
    },
    mode: 'capture',
    stdin: 'ignore',
    watchesLooks: true,
  })

interface Again {
  readonly result: Result
  /** Files that the command could change, and now cannot. */
  readonly files: readonly string[]
}

async function runAgain({ directory, words }: FailedRun, call: Call): Promise<Again> {
  process.chdir(directory)
  const request = await readRequest({ ...call, text: words }, readCommandLine(words, hasBash()))
  if (request.options.cowContinue !== undefined)
    throw new SandboxError(
      'COMMAND_INVALID',
      'that run goes on with changes that wait: a second one would add to them.',
      {
        hint: 'llm-do exec --explain with the same words, if that may be',
      },
    )
  const files: string[] = []
  const note = (policy: Policy) => void files.push(...filesWithoutCopy(policy))
  const result = await runRecorded({ request, invocation: undefined, told: new Set(), changed: again(directory, note) })
  if (result.cow !== undefined) await discardLayer(findPlace(result.cow.id, call.env))
  return { result, files }
}

/** The text for people. */
function story(run: FailedRun, { result, files }: Again): readonly string[] {
  const { ok, denials, warnings, message, hints } = result
  const ended = ok ? 'it succeeded this time' : `it failed again (${result.exitStatus})`
  const told = denials.map((denial) => `  ${denialText(denial)}`)
  const isTold = (hint: string) => denials.some(({ fix }) => fix !== '' && hint.includes(fix))
  const untold = ok ? [] : hints.filter((hint) => !isTold(hint)).map((hint) => `hint: ${hint}`)
  // The end by a limit has a message and a hint, but no entry among the denials.
  const seen = [...(message === '' ? [] : [message]), ...told, ...untold].map(neutralise)
  const nothing = ok ? [] : ['the sandbox refused nothing, and no limit ended the command; read its own output']
  return [
    `${lineOf(run)}`,
    `in ${neutralise(run.directory)}: ${ended}, with its changes thrown away; status ${run.exitStatus} before`,
    ...(run.hadInput ? ['what it read from stdin then was not given to it again'] : []),
    ...files.map((file) => `${neutralise(file)} could be changed then, and is read-only now`),
    ...warnings.map((warning) => `warning: ${neutralise(warning)}`),
    ...(seen.length > 0 ? seen : nothing),
  ]
}

async function list({ env }: Call): Promise<number> {
  const lines = failedRuns(env).map(
    (run) => `${run.id}  ${run.exitStatus}  ${neutralise(run.directory)}  ${lineOf(run)}\n`,
  )
  await writeStdout(lines.join(''))
  return 0
}

export const why = subcommand('why', async ({ operands: [id], flags }, call) => {
  if (flags['list'] === true) return await list(call)
  const run = findFailedRun(call.env, id)
  const ran = await runAgain(run, call)
  const { cow: _, changes: __, ...result } = ran.result
  const text = story(run, ran).map((line) => `${line}\n`)
  await writeStdout(flags['json'] === true ? printJson(result, 'native') : text.join(''))
  return 0
})
