/**
 * `llm-do pool start`: plans as a run does, and has native/tools/pool-keeper.c keep sandboxes of that plan. Loaded for this action alone: the others need
 * nothing of what makes a plan.
 *
 * Edge: processes, the working directory.
 */

import { SandboxError } from '../../error.ts'
import { poolsDirectory, secretDirectory } from '../../host/own-directory.ts'
import { hasBash } from '../../host/program.ts'
import { areVariables, withoutValues } from '../../launch-cache/cache-key.ts'
import { isPoolable } from '../../launch-cache/eligibility.ts'
import { makeLaunchCache } from '../../launch-cache/store.ts'
import { environmentLayers } from '../../policy/environment.ts'
import { flagLayer, type GivenOptions } from '../../policy/option-layer.ts'
import { startDetached } from '../../pool/keeper.ts'
import { neutralise } from '../../report/text.ts'
import { cacheForClient } from '../../run/cache-plan.ts'
import { makeOwnDirectory } from '../../run/caller.ts'
import { prepareZones } from '../../run/make-zones.ts'
import { type ExecOptions, type Prepared, prepare } from '../../run/plan-run.ts'
import { now } from '../../run/run-id.ts'
import { parseDuration } from '../../text/units.ts'
import type { Arguments } from '../arguments.ts'
import type { Call, Environment } from '../call.ts'
import { currentDirectory } from '../current-directory.ts'
import { readCommandLine } from '../exec-arguments.ts'
import { writeStderr } from '../stdio.ts'
import { verbNamed } from '../subcommands.ts'
import { usageError } from '../usage-error.ts'

const HINT = 'llm-do pool start [options] [--size N] [--idle-timeout T] [-- COMMAND]'

const STANDARD_SIZE = 4
const MOST_SANDBOXES = 64
const STANDARD_IDLE = '15m'
/** The plan is made for this program when no command is named; most plans do not depend on it. */
const ANY_COMMAND = ['true']

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
  const line = readCommandLine(rest, hasBash(), { verb: verbNamed('pool', 'start') })
  const { env } = call
  const cwd = currentDirectory(call)
  const given: GivenOptions = { ...environmentLayers(env, cwd).request, ...line.given }
  const refused = ['worker', 'workshop', 'json', 'plan', 'audit'].find((name) => given[name] !== undefined)
  if (refused !== undefined)
    throw usageError(`--${refused}: a pool serves plain runs only.`, 'put what it grants into a profile')
  const [first = ''] = line.command
  if (line.command.length === 1 && /^\d+$/.test(first) && rest[line.optionsEnd] === first)
    throw usageError(`${first} would be the command.`, `llm-do pool start --size ${first}`)
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

export async function start({ flags, operands: rest }: Arguments, call: Call): Promise<number> {
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
  const guarded = await cacheForClient(prepared, begunMs)
  const kept = guarded?.isBlank === true ? guarded : guarded?.own()
  if (kept === undefined) throw notGuarded(prepared, env)
  const isNew = await startDetached({
    pools: poolsDirectory(env, prepared.facts.uid),
    name: kept.pool,
    size,
    idleSeconds,
    launchFile: kept.bytes,
    directory: prepared.request.cwd,
  })
  await writeStderr([
    isNew ? `llm-do: ${size} sandboxes are kept ready` : 'llm-do: these sandboxes are kept ready already',
  ])
  return 0
}
