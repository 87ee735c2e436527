/**
 * `llm-do run --name NAME [options] -- COMMAND`: a sandbox that stays in the background. This program starts itself again, apart from its
 * caller, and waits until the command has been executed or has failed. What stays supervises the run as `exec` does: it holds launch's
 * socket, so that the run ends with it, writes what the command prints into a log, and keeps the result.
 *
 * Edge: processes, pipes, the clock.
 */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { backendNamed } from '../../backends/index.ts'
import { SandboxError } from '../../error.ts'
import { hasBash } from '../../host/program.ts'
import { nativeDirectory } from '../../os/native-programs.ts'
import { randomHex } from '../../os/random-id.ts'
import type { Plan } from '../../plan/plan.ts'
import type { Result } from '../../report/result.ts'
import { resultLines } from '../../report/text.ts'
import { claimName, directoryOfNamed, forgetNamed, keepResult } from '../../run/named-sandboxes.ts'
import { OutputLog } from '../../run/output-log.ts'
import type { ExecOptions } from '../../run/plan-run.ts'
import { newRunId, now } from '../../run/run-id.ts'
import { type Call, wordsFrom } from '../call.ts'
import { commandOf, readCommandLine } from '../exec-arguments.ts'
import { writeStderr, writeStdout } from '../stdio.ts'
import { subcommand } from '../subcommand.ts'
import { SUPERVISE, verbNamed } from '../subcommands.ts'
import { usageError } from '../usage-error.ts'
import { type ExecRequest, readRequest, runRecorded } from './exec.ts'

/** They show something, or need somebody who sits there. */
const NOT_IN_BACKGROUND = ['json', 'plan', 'argv', 'why', 'tty', 'in', 'die-with-parent']

function refuseForeground(given: ExecRequest['given']): void {
  const refused = NOT_IN_BACKGROUND.find((name) => given[name] !== undefined)
  if (refused !== undefined) throw usageError(`--${refused} is for a command that is waited for.`, 'llm-do exec')
  if (given['apply'] === 'ask') throw usageError('--apply ask: nobody is there to be asked.', 'llm-do apply ID')
}

const RUN = verbNamed('run')

/* ---- what the caller waits for ---- */

export const run = subcommand('run', async ({ flags, operands: rest }, call) => {
  if (call.bytes !== undefined)
    throw usageError('a word of the command line is not valid UTF-8.', 'put the command into a script')
  const { name = `sandbox-${randomHex(4)}` } = flags as { readonly name?: string }
  const line = readCommandLine(rest, hasBash(), {
    verb: RUN,
    before: 'name' in flags ? ['--name', name] : [],
  })
  directoryOfNamed(call.env, name) // an invalid name is refused before anything is started
  refuseForeground(line.given)
  commandOf(line, RUN)
  return await startSupervisor([name, ...rest], call)
})

/** Starts a separate process that outlives the caller's session. @returns the exit status of `run` */
function startSupervisor(words: readonly string[], { env }: Call): Promise<number> {
  const child = spawn(join(nativeDirectory(), 'llm-do'), [SUPERVISE, ...words], {
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  return new Promise((resolve, reject) => {
    const complaints: Buffer[] = []
    child.once('error', reject)
    child.stderr.on('data', (bytes: Buffer) => complaints.push(bytes))
    const tell = async (status: number, said = ''): Promise<number> => {
      await writeStdout(said)
      await writeStderr(
        Buffer.concat(complaints)
          .toString()
          .split('\n')
          .filter((line) => line !== ''),
      )
      return status
    }
    child.stdout.once('data', (bytes: Buffer) => resolve(tell(0, bytes.toString())))
    child.once('close', (status) => resolve(tell(status ?? 125)))
  })
}

/* ---- what stays ---- */

function refuseUnserved({ backend, tty }: Plan): void {
  if (tty) throw usageError('tty: a command in the background has no terminal.', 'LLM_DO_EXEC_TTY=false llm-do run ...')
  if (backendNamed(backend).hasLaunchFile) return
  throw new SandboxError('NO_BACKEND', `a sandbox of the backend ${backend} cannot stay in the background.`, {
    hint: 'llm-do run --backend namespace ...',
  })
}

/** The first word is the name; the others are the command line of `run` without it. */
export async function supervise(call: Call): Promise<number> {
  const [name = ''] = call.text
  const rest = wordsFrom(call, 1)
  const request = await readRequest(rest, readCommandLine(rest.text, hasBash()))
  const runId = newRunId()
  const { command, cwd = '/' } = request.options
  const directory = claimName(call.env, { name, runId, command, directory: cwd, started: Math.floor(now() / 1000) })
  const log = new OutputLog(directory)
  let hasStarted = false
  const onServing = () => {
    hasStarted = true
    void writeStdout(`${name}\n`)
  }
  try {
    const result = await runInBackground({ ...request, json: undefined }, { runId, directory, onServing }, log)
    if (hasStarted || result.error === undefined) return await end(name, directory, result, hasStarted)
    await writeStderr(resultLines(result))
    forgetNamed(directory)
    return result.exitStatus
  } catch (error) {
    forgetNamed(directory)
    throw error
  } finally {
    log.close()
  }
}

/** A command may be over before anybody can be told that it has started. */
async function end(name: string, directory: string, result: Result, hasStarted: boolean): Promise<number> {
  keepResult(directory, result)
  if (!hasStarted) await writeStdout(`${name}\n`)
  return 0
}

async function runInBackground(
  request: ExecRequest,
  serve: NonNullable<ExecOptions['serve']>,
  log: OutputLog,
): Promise<Result> {
  const changed = ({ onPlanned, ...options }: ExecOptions): ExecOptions => ({
    ...options,
    mode: 'capture',
    stdin: 'ignore',
    // Like an interactive run, it has no default timeout.
    isAtTerminal: true,
    serve,
    onStdout: (bytes) => log.write('stdout', bytes),
    onStderr: (bytes) => log.write('stderr', bytes),
    onPlanned: async (plan) => {
      refuseUnserved(plan)
      await onPlanned?.(plan)
    },
  })
  return await runRecorded({ request, invocation: undefined, told: new Set(), changed })
}
