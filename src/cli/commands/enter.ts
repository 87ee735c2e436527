/**
 * `llm-do exec --in NAME -- COMMAND` where the client (native/client/exec-in.c) leaves it to Node: a name that is not one as it is written, options
 * that it does not read, and everything that is wrong. The same program then runs the command.
 *
 * Edge: processes, signals.
 */
import { spawn } from 'node:child_process'
import { SandboxError } from '../../error.ts'
import { checkNativeProgram, hostCall } from '../../os/native-programs.ts'
import { PASSED_SIGNALS } from '../../os/passed-signals.ts'
import { inherited } from '../../plan/environment.ts'
import { flagLayer, type GivenOptions } from '../../policy/option-layer.ts'
import { invalidPolicy } from '../../policy/policy-error.ts'
import { checkLayer } from '../../policy/validate-layer.ts'
import { jsonForm } from '../../report/json.ts'
import { directoryOfNamed, findNamed, stateOf } from '../../run/named-sandboxes.ts'
import type { Call } from '../call.ts'
import { endBy } from '../end-by-signal.ts'
import { type CommandLine, commandOf } from '../exec-arguments.ts'
import { refuseVariables } from '../refuse-variables.ts'
import { usageError } from '../usage-error.ts'

/** Everything else was decided when the sandbox was started. */
const TAKEN = ['in', 'tty', 'env', 'workdir', 'timeout', 'json', 'keep-state']

/** Rules and records are about the command that a sandbox is started with. native/client/exec-in.c knows them, too. */
const NOT_INSIDE = ['worker', 'audit']

/** Passed on to that program, which knows which of them end the command. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGQUIT', ...PASSED_SIGNALS] as const

export async function enter(name: string, { env, bytes }: Call, line: CommandLine): Promise<number> {
  const command = commandOf(line)
  const refused = Object.keys(line.given).find((given) => !TAKEN.includes(given))
  if (refused !== undefined)
    throw usageError(
      `--${refused} with --in: the walls of ${name} were decided when it was started.`,
      'llm-do exec --in NAME [--tty] [--json] [--env NAME[=VALUE]] [--workdir DIR] [--timeout TIME] [--keep-state] -- COMMAND [ARG...]',
    )
  refuseVariables(env, NOT_INSIDE, 'llm-do exec --in')
  if (bytes !== undefined)
    throw usageError('a word of the command line is not valid UTF-8.', 'put the command into a script')
  const { words, variables } = optionsFor(line.given, env)
  const sandbox = findNamed(env, name)
  if (stateOf(env, sandbox) !== 'running')
    throw new SandboxError('SANDBOX_NOT_FOUND', `${name} has ended.`, { hint: `llm-do stop ${name}` })
  const place = directoryOfNamed(env, sandbox.name)
  return await runEnter([place, String(process.pid), ...words, '--', ...command], { TERM: env['TERM'], ...variables })
}

interface EnterOptions {
  readonly words: readonly string[]
  /** Their values are in no argument list. */
  readonly variables: Readonly<Record<string, string>>
}

function optionsFor(given: GivenOptions, env: Call['env']): EnterOptions {
  const form = jsonForm(given['json'])
  if (form !== undefined && given['tty'] === true)
    throw usageError(
      '--json with --tty: a terminal shows its output, and none is left for the result.',
      'leave one of them out',
    )
  const { parsed, problems } = checkLayer(flagLayer(given, '/'))
  if (problems.length > 0) throw invalidPolicy(problems)
  const { workdir, env: { inherit = [], set = {} } = {}, resources: { timeout } = {} } = parsed
  const own = Object.fromEntries(
    inherited(inherit, Object.keys(env)).map((variable) => [variable, env[variable] ?? '']),
  )
  const variables = { ...own, ...set }
  const words = [
    ...(given['tty'] === true ? ['--tty'] : []),
    ...(form === undefined ? [] : [`--json=${form}`]),
    ...(typeof given['keep-state'] === 'string' ? [`--keep-state=${given['keep-state']}`] : []),
    ...(workdir === undefined ? [] : ['--workdir', workdir]),
    ...(typeof timeout === 'number' ? ['--timeout', `${timeout}ms`] : []),
    ...Object.keys(variables).flatMap((variable) => ['--env', variable]),
  ]
  return { words, variables }
}

/** It ends with us: the kernel tells it. */
function runEnter(words: readonly string[], env: Readonly<Record<string, string | undefined>>): Promise<number> {
  const { file, argv } = hostCall('exec-in', words)
  checkNativeProgram(file, process.arch)
  // Before it is started: what has seen it at work may send us one at once.
  for (const signal of SIGNALS) process.on(signal, () => child.kill(signal))
  const child = spawn(file, argv, { stdio: 'inherit', env, cwd: '/' })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (status, signal) => {
      endBy(signal)
      resolve(status ?? 137)
    })
  })
}
