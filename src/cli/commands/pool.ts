/**
 * `llm-do pool start|status|stop`: sandboxes that are ready before their command comes. native/tools/pool-keeper.c keeps them, the client uses
 * them; here they are only started, listed and ended.
 *
 * Edge: processes, the working directory.
 */

import { poolsDirectory } from '../../host/own-directory.ts'
import { runPoolProgram } from '../../pool/keeper.ts'
import { neutralise } from '../../report/text.ts'
import { makeOwnDirectory } from '../../run/caller.ts'
import type { Arguments } from '../arguments.ts'
import type { Call, Environment } from '../call.ts'
import { currentDirectory } from '../current-directory.ts'
import { writeStderr, writeStdout } from '../stdio.ts'
import { subcommand } from '../subcommand.ts'

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

function listPools(env: Environment): readonly PoolLine[] {
  const lines = runPoolProgram('status', pools(env)).split('\n')
  return lines.flatMap((line) => (line === '' ? [] : [JSON.parse(line) as PoolLine]))
}

async function status({ flags }: Arguments, { env }: Call): Promise<number> {
  const found = listPools(env)
  if (flags['json'] === true) await writeStdout(`${JSON.stringify(found)}\n`)
  else await writeStdout(found.map(rowOf).join('') || 'no pool is kept\n')
  return 0
}

function rowOf({ pid, size, started, profile, directory, ready }: PoolLine): string {
  const since = new Date(started * 1000).toISOString()
  return `${ready} of ${size} ready  profile ${neutralise(profile)}  ${neutralise(directory)}  since ${since}  pid ${pid}\n`
}

/** Pools of the caller's directory, unless all are meant. */
async function stop({ flags }: Arguments, call: Call): Promise<number> {
  const directory = flags['all'] === true ? undefined : currentDirectory(call)
  const found = listPools(call.env)
  const ended = found.filter((pool) => directory === undefined || pool.directory === directory)
  const names = ended.map(({ name }) => name)
  const count = names.length === 0 ? 0 : Number(runPoolProgram('stop', pools(call.env), names))
  await writeStdout(`${count} ${count === 1 ? 'pool' : 'pools'} stopped\n`)
  const elsewhere = found.length - ended.length
  if (directory !== undefined && count === 0 && elsewhere > 0)
    await writeStderr([
      `llm-do: none is kept for ${neutralise(directory)}; ${elsewhere} for other directories (llm-do pool stop --all)`,
    ])
  return 0
}

async function start(parsed: Arguments, call: Call): Promise<number> {
  return await (await import('./pool-start.ts')).start(parsed, call)
}

const ACTIONS: Readonly<Record<string, typeof start>> = { start, status, stop }

export const pool = subcommand(
  'pool',
  async (parsed, call) => (await ACTIONS[parsed.action ?? '']?.(parsed, call)) ?? 0,
)
