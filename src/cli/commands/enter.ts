/**
 * `llm-do exec --in NAME -- COMMAND`: another command in a sandbox that `llm-do run` has started. native/tools/exec-in.c asks its launcher for it, gives the
 * command our streams, and ends with it.
 *
 * Edge: processes, signals.
 */
import { spawn } from 'node:child_process'
import { SandboxError } from '../../error.ts'
import { checkNativeProgram, hostCall } from '../../os/native-programs.ts'
import { PASSED_SIGNALS } from '../../os/passed-signals.ts'
import { directoryOfNamed, findNamed, stateOf } from '../../run/named-sandboxes.ts'
import type { Call } from '../call.ts'
import { type CommandLine, commandOf } from '../exec-arguments.ts'
import { usageError } from '../usage-error.ts'

/** Everything else was decided when the sandbox was started. */
const TAKEN = ['in', 'tty']

/** Passed on to that program, which knows which of them end the command. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGQUIT', ...PASSED_SIGNALS] as const

export async function enter(name: string, { env, bytes }: Call, line: CommandLine): Promise<number> {
  const command = commandOf(line)
  const refused = Object.keys(line.given).find((given) => !TAKEN.includes(given))
  if (refused !== undefined)
    throw usageError(
      `--${refused} with --in: the walls of ${name} were decided when it was started.`,
      'llm-do exec --in NAME [--tty] -- COMMAND [ARG...]',
    )
  if (bytes !== undefined)
    throw usageError('a word of the command line is not valid UTF-8.', 'put the command into a script')
  const sandbox = findNamed(env, name)
  if (stateOf(env, sandbox) !== 'running')
    throw new SandboxError('SANDBOX_NOT_FOUND', `${name} has ended.`, { hint: `llm-do stop ${name}` })
  const how = line.given['tty'] === true ? 'terminal' : 'plain'
  return await runEnter([directoryOfNamed(env, sandbox.name), String(process.pid), how, '--', ...command], env['TERM'])
}

/** It ends with us: the kernel tells it. */
function runEnter(words: readonly string[], term: string | undefined): Promise<number> {
  const { file, argv } = hostCall('exec-in', words)
  checkNativeProgram(file, process.arch)
  // Before it is started: what has seen it at work may send us one at once.
  for (const signal of SIGNALS) process.on(signal, () => child.kill(signal))
  const child = spawn(file, argv, { stdio: 'inherit', env: term === undefined ? {} : { TERM: term }, cwd: '/' })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (status) => resolve(status ?? 137))
  })
}
