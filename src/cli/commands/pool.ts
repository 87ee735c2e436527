/**
 * `llm-do pool start|status|stop`: sandboxes that are ready before their command comes. bin/pool keeps them, the client uses
 * them; here they are only started, listed and ended.
 *
 * Edge: processes, the working directory.
 */

import { SandboxError } from '../../error.ts'
import { secretDirectory } from '../../host/own-directory.ts'
import { hasBash } from '../../host/program.ts'
import { areVariables, withoutValues } from '../../launch-cache/cache-key.ts'
import { isPoolable } from '../../launch-cache/eligibility.ts'
import { makeLaunchCache } from '../../launch-cache/store.ts'
import { environmentLayers } from '../../policy/environment.ts'
import { flagLayer, type GivenOptions } from '../../policy/option-layer.ts'
import { runPoolProgram, startDetached } from '../../pool/keeper.ts'
import { poolsDirectory } from '../../pool/pool-directory.ts'
import { neutralise } from '../../report/text.ts'
import { makeOwnDirectory } from '../../run/caller.ts'
import { leaveForClient } from '../../run/leave.ts'
import { prepareZones } from '../../run/make-zones.ts'
import { type ExecOptions, type Prepared, prepare } from '../../run/plan-run.ts'
import { now } from '../../run/run-id.ts'
import { parseDuration } from '../../text/units.ts'
import type { Arguments } from '../arguments.ts'
import type { Call, Environment } from '../call.ts'
import { currentDirectory } from '../current-directory.ts'
import { readCommandLine } from '../exec-arguments.ts'
import { writeStderr, writeStdout } from '../stdio.ts'
import { subcommand } from '../subcommand.ts'
import { usageError } from '../usage-error.ts'

const HINT = 'llm-do pool start [options] [--size N] [--idle-timeout T] [-- COMMAND]'

const STANDARD_SIZE = 4
const MOST_SANDBOXES = 64
const STANDARD_IDLE = '15m'
/** What the plan is made for when no command is named; most plans do not depend on it. */
const ANY_COMMAND = ['true']

/* ---- start ---- */

const textOf = (value: GivenOptions[string]) => (typeof value === 'string' ? value : undefined)

function sizeOf(text = String(STANDARD_SIZE)): number {
  const size = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (size < 1 || size > MOST_SANDBOXES)
    throw usageError(`--size: expected a number from 1 to ${MOST_SANDBOXES}, got "${neutralise(text)}".`, HINT)
  return size
}

function idleOf(text = STANDARD_IDLE): number {
  if (text === 'none') return 0
  const read = parseDuration(text)
  if (!read.ok || read.value < 1000)
    throw usageError(`--idle-timeout: expected at least 1s, or none, got "${neutralise(text)}".`, HINT)
  return Math.round(read.value / 1000)
}

function execOptions(call: Call, rest: readonly string[]): ExecOptions {
  const line = readCommandLine(rest, hasBash())
  const { env } = call
  const cwd = currentDirectory(call)
  const given: GivenOptions = { ...environmentLayers(env, cwd).request, ...line.given }
  const refused = ['worker', 'workshop', 'json', 'plan', 'audit'].find((name) => given[name] !== undefined)
  if (refused !== undefined)
    throw usageError(`--${refused}: a pool serves plain runs only.`, 'put what it grants into a profile')
  const command = line.command.length === 0 ? ANY_COMMAND : line.command
  const { profile } = given
  const invocation = { ...withoutValues(rest.slice(0, line.optionsEnd)), program: command[0] ?? '' }
  return {
    command,
    layers: [flagLayer(line.given, cwd)],
    ...(typeof profile === 'string' && { profile }),
    cwd,
    env,
    mode: 'inherit',
    stdin: 'inherit',
    ...(areVariables(invocation, typeof line.given['env'] === 'object' ? line.given['env'] : []) && { invocation }),
  }
}

function refuseUnpoolable(prepared: Prepared): void {
  if (isPoolable(prepared)) return
  const { plan, policy } = prepared
  const why = plan.tty
    ? 'a terminal is the caller’s from the start'
    : policy.pool === 'off'
      ? 'the policy says pool: off'
      : plan.layer?.upper === 'copy'
        ? 'directories are copied when their command comes (cow.upper)'
        : `the plan is one for ${plan.backend}`
  throw new SandboxError('POLICY_INVALID', `this plan cannot be kept ready: ${why}`, { hint: 'llm-do exec --plan ...' })
}

function notGuarded({ plan, facts }: Prepared, env: Environment): SandboxError {
  if (secretDirectory(env, facts.uid) === undefined)
    return new SandboxError(
      'SETUP_FAILED',
      'this plan cannot be kept ready: there is no runtime directory for the key that seals it',
      {
        hint: 'log in by PAM (loginctl enable-linger), or set XDG_RUNTIME_DIR to a directory of your own, mode 0700, outside of every zone',
      },
    )
  const why =
    plan.warnings[0] ?? 'it has variables of the command line, or a file it was made from has just been changed'
  return new SandboxError('SETUP_FAILED', `this plan cannot be kept ready: ${why}`, {
    hint: 'put variables into a profile, and try again',
  })
}

async function start({ flags, operands: rest }: Arguments, call: Call): Promise<number> {
  const { env } = call
  const size = sizeOf(textOf(flags['size']))
  const idleSeconds = idleOf(textOf(flags['idle-timeout']))
  const begunMs = now()
  const options = execOptions(call, rest)
  // Before planning, as a run does: the plan says whether the directory is there.
  makeLaunchCache({ env, uid: process.getuid?.() ?? -1 })
  makeOwnDirectory(env)
  const prepared = await prepareZones(() => prepare(options))
  refuseUnpoolable(prepared)
  const guarded = await leaveForClient(prepared, begunMs)
  if (guarded === undefined) throw notGuarded(prepared, env)
  const { isNew } = await startDetached({
    pools: poolsDirectory(env, prepared.facts.uid),
    name: guarded.pool,
    size,
    idleSeconds,
    launchFile: guarded.bytes,
  })
  await writeStderr([
    isNew ? `llm-do: ${size} sandboxes are kept ready` : 'llm-do: these sandboxes are kept ready already',
  ])
  return 0
}

/* ---- status, stop ---- */

function pools(env: Environment): string {
  makeOwnDirectory(env)
  return poolsDirectory(env, process.getuid?.() ?? 0)
}

/** A line of `pool status`. */
interface PoolLine {
  readonly name: string
  readonly pid: number
  readonly size: number
  /** Seconds since 1970. */
  readonly started: number
  readonly profile: string
  readonly directory: string
  readonly ready: number
}

async function listPools(env: Environment): Promise<readonly PoolLine[]> {
  const lines = (await runPoolProgram('status', pools(env))).split('\n')
  return lines.flatMap((line) => (line === '' ? [] : [JSON.parse(line) as PoolLine]))
}

async function status({ flags }: Arguments, { env }: Call): Promise<number> {
  const found = await listPools(env)
  if (flags['json'] === true) await writeStdout(`${JSON.stringify(found)}\n`)
  else await writeStdout(found.map(rowOf).join('') || 'no pool is kept\n')
  return 0
}

function rowOf({ pid, size, started, profile, directory, ready }: PoolLine): string {
  const since = new Date(started * 1000).toISOString()
  return `${ready} of ${size} ready  profile ${neutralise(profile)}  ${neutralise(directory)}  since ${since}  pid ${pid}\n`
}

/** Those of the caller's directory, unless all are meant. */
async function stop({ flags }: Arguments, call: Call): Promise<number> {
  const directory = flags['all'] === true ? undefined : currentDirectory(call)
  const found = await listPools(call.env)
  const ended = found.filter((pool) => directory === undefined || pool.directory === directory)
  const names = ended.map(({ name }) => name)
  const count = names.length === 0 ? 0 : Number(await runPoolProgram('stop', pools(call.env), names))
  await writeStdout(`${count} ${count === 1 ? 'pool' : 'pools'} stopped\n`)
  const elsewhere = found.length - ended.length
  if (directory !== undefined && count === 0 && elsewhere > 0)
    await writeStderr([
      `llm-do: none is kept for ${neutralise(directory)}; ${elsewhere} for other directories (llm-do pool stop --all)`,
    ])
  return 0
}

const ACTIONS: Readonly<Record<string, typeof start>> = { start, status, stop }

export const pool = subcommand(
  'pool',
  async (parsed, call) => (await ACTIONS[parsed.action ?? '']?.(parsed, call)) ?? 0,
)
