/**
 * `llm-do pool start|status|stop`: sandboxes that are ready before their command comes. bin/pool keeps them, the front-end uses
 * them; here they are only asked for.
 *
 * Edge: processes, the working directory.
 */
import { makeOwnDirectory, now, prepareZones } from '../edges.ts'
import { SandboxError } from '../error.ts'
import { type ExecOptions, leaveForFront, type Prepared, prepare } from '../exec.ts'
import { usableCache } from '../host/cache.ts'
import { secretDirectory } from '../host/own-directory.ts'
import { isPoolable } from '../launch-cache/cacheable.ts'
import { launchCacheDirectory, makeLaunchCache } from '../launch-cache/store.ts'
import { environmentLayers } from '../policy/environment.ts'
import { flagLayer, type GivenOptions } from '../policy/option-layer.ts'
import { askPools, startDetached } from '../pool/keeper.ts'
import { poolsDirectory } from '../pool/place.ts'
import { neutralise } from '../report/text.ts'
import { parseDuration } from '../text/units.ts'
import { type Call, type Environment, wordsFrom } from './call.ts'
import { commandOf, readCommandLine } from './command-line.ts'
import { currentDirectory } from './directory.ts'
import { say, tell } from './output.ts'
import { understand, usageError } from './verb.ts'

const USAGE = 'start [options] [--size N] [--idle-timeout T] [-- COMMAND]|status [--json]|stop'
const HINT = `llm-do pool ${USAGE}`

const STANDARD_SIZE = 4
const MOST_SANDBOXES = 64
const STANDARD_IDLE = '15m'
/** What the plan is made for when no command is named; most plans do not depend on it. */
const ANY_COMMAND = ['true']

/* ---- start ---- */

interface Asked {
  readonly size: number
  readonly idleSeconds: number
  /** The words of `exec` that are left. */
  readonly rest: readonly string[]
}

/** Takes our own two options out of the words before the command. */
function takeOwn(words: readonly string[]): Asked {
  const end = words.indexOf('--')
  const [before, after] = end === -1 ? [words, []] : [words.slice(0, end), words.slice(end)]
  const taken: Record<string, string | undefined> = {}
  const rest: string[] = []
  for (let at = 0; at < before.length; at += 1) {
    const word = before[at] ?? ''
    const name = ['--size', '--idle-timeout'].find((own) => word === own || word.startsWith(`${own}=`))
    if (name === undefined) rest.push(word)
    else if (word === name) taken[name] = before[++at] ?? ''
    else taken[name] = word.slice(name.length + 1)
  }
  return { size: sizeOf(taken['--size']), idleSeconds: idleOf(taken['--idle-timeout']), rest: [...rest, ...after] }
}

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
  const line = readCommandLine(rest)
  const { env } = call
  const cwd = currentDirectory(call)
  const given: GivenOptions = { ...environmentLayers(env, cwd).request, ...line.given }
  const refused = ['worker', 'workshop', 'json', 'plan', 'audit'].find((name) => given[name] !== undefined)
  if (refused !== undefined)
    throw usageError(`--${refused}: a pool serves plain runs only.`, 'put what it grants into a profile')
  const command = line.command.length === 0 && line.script === undefined ? ANY_COMMAND : commandOf(line)
  const { profile } = given
  return {
    command,
    layers: [flagLayer(line.given, cwd)],
    ...(typeof profile === 'string' && { profile }),
    cwd,
    env,
    mode: 'inherit',
    stdin: 'inherit',
    invocation: {
      kind: 'command',
      options: rest.slice(0, line.commandAt - (rest[line.commandAt - 1] === '--' ? 1 : 0)),
      program: command[0] ?? '',
    },
  }
}

function refuseUnpoolable(prepared: Prepared): void {
  if (isPoolable(prepared)) return
  const { plan, policy } = prepared
  const why = plan.tty
    ? 'a terminal is the caller’s from the start'
    : policy.pool === 'off'
      ? 'the policy says pool: off'
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

async function start(call: Call): Promise<number> {
  const { env } = call
  const { size, idleSeconds, rest } = takeOwn(call.text)
  const begunMs = now()
  const options = execOptions(call, rest)
  // Before planning, as a run does: the plan says whether the directory is there.
  const cache = usableCache(env, process.getuid?.() ?? -1)
  if (cache !== undefined) makeLaunchCache(launchCacheDirectory(cache))
  makeOwnDirectory(env)
  const prepared = await prepareZones(() => prepare(options))
  refuseUnpoolable(prepared)
  const guarded = await leaveForFront(prepared, begunMs)
  if (guarded === undefined) throw notGuarded(prepared, env)
  const { isNew } = await startDetached({
    pools: poolsDirectory(env, prepared.facts.uid),
    name: guarded.pool,
    size,
    idleSeconds,
    launchFile: guarded.bytes,
  })
  await tell([isNew ? `llm-do: ${size} sandboxes are kept ready` : 'llm-do: these sandboxes are kept ready already'])
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

async function status({ text, env }: Call): Promise<number> {
  const { flags } = understand(text, { verb: 'pool status', usage: '[--json]', flags: ['--json'] })
  const lines = (await askPools('status', pools(env))).split('\n').filter((line) => line !== '')
  if (flags.has('--json')) await say(`[${lines.join(',')}]\n`)
  else await say(lines.map((line) => rowOf(JSON.parse(line) as PoolLine)).join('') || 'no pool is kept\n')
  return 0
}

function rowOf({ pid, size, started, profile, directory, ready }: PoolLine): string {
  const since = new Date(started * 1000).toISOString()
  return `${ready} of ${size} ready  profile ${neutralise(profile)}  ${neutralise(directory)}  since ${since}  pid ${pid}\n`
}

async function stop({ text, env }: Call): Promise<number> {
  understand(text, { verb: 'pool stop', usage: '' })
  const count = Number(await askPools('stop', pools(env)))
  await say(`${count} ${count === 1 ? 'pool' : 'pools'} stopped\n`)
  return 0
}

const ACTIONS: Readonly<Record<string, (call: Call) => Promise<number>>> = { start, status, stop }

export async function pool(call: Call): Promise<number> {
  const [name = ''] = call.text
  const action = Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined
  if (action === undefined) throw usageError(`pool: expected start, status or stop, got "${neutralise(name)}".`, HINT)
  return await action(wordsFrom(call, 1))
}
