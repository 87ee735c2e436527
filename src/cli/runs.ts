/**
 * `llm-do ps`, `kill ID...`, `prune`: the live runs of this user, by the native helper that reads their records,
 * and for `prune` also what keepers of warm sandboxes have left, and what the daemon of docker knows.
 *
 * Edge: processes, the clock.
 */
import { join } from 'node:path'
import { makeOwnDirectory, pruneTrials } from '../edges.ts'
import { SandboxError } from '../error.ts'
import { helpersDirectory } from '../os/native-helpers.ts'
import { askPools } from '../pool/keeper.ts'
import { poolsDirectory } from '../pool/place.ts'
import { neutralise } from '../report/text.ts'
import { runsDirectory } from '../supervisor/runs-directory.ts'
import type { Call, Environment } from './call.ts'
import { standing } from './directory.ts'
import { say, tell } from './output.ts'
import { FOUND_PROBLEMS, understand } from './verb.ts'

/** A line of `runs list`. */
interface Run {
  readonly id: string
  readonly pid: number
  /** Seconds since 1970. */
  readonly started: number
  readonly command: readonly string[]
  readonly profile: string
}

interface Answer {
  readonly stdout: string
  /** 0, or 1 for "no such run". */
  readonly status: number
}

/** Runs the helper. @throws SandboxError with its own words when it cannot do its work */
async function askHelper(
  env: Environment,
  action: 'list' | 'kill' | 'prune',
  ...words: readonly string[]
): Promise<Answer> {
  const { execa } = await import('execa')
  const helper = join(helpersDirectory(), 'runs')
  makeOwnDirectory(env)
  const argv = [action, runsDirectory(env, process.getuid?.() ?? 0), ...words]
  const { exitCode, stdout, stderr, code } = await execa(helper, argv, {
    env: {},
    extendEnv: false,
    reject: false,
    stdin: 'ignore',
  })
  if (code === 'ENOENT') throw new SandboxError('HELPER_MISSING', `${helper}: no such file.`, { hint: 'make native' })
  if (exitCode === 0 || exitCode === 1) return { stdout, status: exitCode }
  const why = stderr.trim() || `${helper} failed`
  throw new SandboxError('BACKEND_FAILED', `${action}: ${why}`, {
    hint: 'ls -ld the directory named above; it must be yours alone',
  })
}

function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd()
  return rows.map((row) => `${line(row)}\n`).join('')
}

const HEADER = ['ID', 'PID', 'STARTED', 'PROFILE', 'COMMAND'] as const
/** Of a command, in a table. */
const SHOWN_CHARACTERS = 60

function rowOf({ id, pid, started, command, profile }: Run): readonly string[] {
  const shown = neutralise(command.join(' '))
  const cut = shown.length > SHOWN_CHARACTERS ? `${shown.slice(0, SHOWN_CHARACTERS)}...` : shown
  return [id, String(pid), new Date(started * 1000).toISOString(), neutralise(profile), cut]
}

export async function ps({ text, env }: Call): Promise<number> {
  const { flags } = understand(text, { verb: 'ps', usage: '[--json]', flags: ['--json'] })
  const lines = (await askHelper(env, 'list')).stdout.split('\n').filter((line) => line !== '')
  if (flags.has('--json')) await say(`[${lines.join(',')}]\n`)
  else await say(table([HEADER, ...lines.map((line) => rowOf(JSON.parse(line) as Run))]))
  return 0
}

export async function kill({ text, env }: Call): Promise<number> {
  const { operands } = understand(text, { verb: 'kill', usage: 'ID...', operands: [1, Number.POSITIVE_INFINITY] })
  const answers = await Promise.all(operands.map(async (id) => ({ id, ...(await askHelper(env, 'kill', id)) })))
  const missing = answers.filter(({ status }) => status !== 0)
  await tell(missing.map(({ id }) => `llm-do: no run ${neutralise(id)} is alive (see: llm-do ps)`))
  return missing.length === 0 ? 0 : FOUND_PROBLEMS
}

/** Milliseconds; who cleans up does not wait for a daemon that hangs. */
const DAEMON_ANSWER_MS = 2_000

/** Containers of killed runners and of sessions. @returns how many were removed; 0 where no daemon answers */
async function pruneContainers(env: Environment): Promise<number> {
  const { observeDocker } = await import('../host/docker.ts')
  const docker = await observeDocker({ env, notBelow: standing(), answerMs: DAEMON_ANSWER_MS })
  if (docker?.server.ok !== true) return 0
  const [{ dockerInputs }, { sweep }] = await Promise.all([
    import('../backend/docker-inputs.ts'),
    import('../supervisor/docker-sweep.ts'),
  ])
  const directory = runsDirectory(env, process.getuid?.() ?? 0)
  return await sweep(dockerInputs(docker, env), {
    now: Date.now(),
    runsDirectory: directory,
    endsSessions: true,
  })
}

/** What killed keepers of warm sandboxes have left. @returns how many there were */
async function prunePools(env: Environment): Promise<number> {
  return Number(await askPools('prune', poolsDirectory(env, process.getuid?.() ?? 0)))
}

/** Prints how many dead runs and keepers were cleaned up after. */
export async function prune({ text, env }: Call): Promise<number> {
  understand(text, { verb: 'prune', usage: '' })
  // Where there is no helper (macOS, Windows) there are no records either.
  const isLinux = process.platform === 'linux'
  const records = isLinux ? Number((await askHelper(env, 'prune')).stdout.trim()) : 0
  const pools = isLinux ? await prunePools(env) : 0
  if (isLinux) await pruneTrials(env)
  await say(`${records + pools + (await pruneContainers(env))} removed\n`)
  return 0
}
