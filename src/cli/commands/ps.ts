/**
 * `llm-do ps`: the runs of this user that are alive; as root those of the others, too.
 *
 * Edge: the clock, the list of accounts.
 */
import { readFileSync } from 'node:fs'
import { ACCOUNTS, namesOfAccounts } from '../../host/accounts.ts'
import { jsonLine } from '../../report/json.ts'
import type { Result } from '../../report/result.ts'
import { table } from '../../report/table.ts'
import { neutralise } from '../../report/text.ts'
import { listNamed, resultOfNamed, stateOf } from '../../run/named-sandboxes.ts'
import { formatAge } from '../../text/units.ts'
import type { Environment } from '../call.ts'
import { isOwn, listRuns, type RunLine } from '../run-records.ts'
import { writeStdout } from '../stdio.ts'
import { subcommand } from '../subcommand.ts'

interface Run extends RunLine {
  /** The number where the account has no name here. */
  readonly user: string
  /** Name of a sandbox in the background. */
  readonly name?: string
}

function accountNames(): ReadonlyMap<number, string> {
  try {
    return namesOfAccounts(readFileSync(ACCOUNTS, 'utf8'))
  } catch {
    return new Map() // Numbers say the same.
  }
}

const printed = (rows: readonly (readonly string[])[]): string =>
  table(rows)
    .map((line) => `${line}\n`)
    .join('')

const HEADER = ['ID', 'NAME', 'PID', 'USER', 'AGE', 'PROFILE', 'DIRECTORY', 'COMMAND'] as const
/** Most characters of a command in the table. */
const SHOWN_CHARACTERS = 60

function shown(command: readonly string[]): string {
  const text = neutralise(command.join(' '))
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}...` : text
}

function rowOf(
  { id, name = '-', pid, user, started, profile, directory, command }: Run,
  nowMs: number,
): readonly string[] {
  const age = formatAge(nowMs - started * 1000)
  return [
    neutralise(id),
    name,
    String(pid),
    user,
    age,
    neutralise(profile),
    neutralise(directory) || '-',
    shown(command),
  ]
}

async function listWaiting(env: Environment, json: boolean): Promise<number> {
  const { listLayers } = await import('../../cow/layers.ts')
  const found = listLayers(env).map(({ id, record: { sinceMs, profile, zones } }) => ({
    id,
    started: new Date(sinceMs).toISOString(),
    profile,
    zones: zones.map(({ source, target }) => ({ source, target })),
  }))
  const rows = found.map(({ id, started, profile, zones }) => [
    id,
    started,
    neutralise(profile),
    neutralise(zones.map(({ source }) => source).join(' ')),
  ])
  await writeStdout(json ? `${JSON.stringify(found)}\n` : printed([['ID', 'STARTED', 'PROFILE', 'DIRECTORY'], ...rows]))
  return 0
}

/** Sandboxes in the background that are over: how, and what they were. */
async function listEnded(env: Environment, isJson: boolean): Promise<number> {
  const over = listNamed(env)
    .map((sandbox) => ({
      ...sandbox,
      state: stateOf(env, sandbox),
      result: resultOfNamed(env, sandbox) as Result | undefined,
    }))
    .filter(({ state }) => state !== 'running')
  if (isJson) {
    await writeStdout(over.map(({ supervisor: _, ...one }) => jsonLine(one)).join(''))
    return 0
  }
  const rows = over.map(({ name, runId, command, result, directory }) => [
    name,
    runId,
    result === undefined ? 'lost' : `${result.reason} ${result.exitStatus}`,
    neutralise(directory),
    shown(command),
  ])
  await writeStdout(printed([['NAME', 'ID', 'END', 'DIRECTORY', 'COMMAND'], ...rows]))
  return 0
}

export const ps = subcommand('ps', async ({ flags }, { env }) => {
  if (flags['ended'] === true) return await listEnded(env, flags['json'] === true)
  const followed = flags['net']
  if (typeof followed === 'string') {
    const { followNetwork } = await import('./ps-net.ts')
    return await followNetwork(env, followed, flags['json'] === true)
  }
  if (flags['cow'] === true) return await listWaiting(env, flags['json'] === true)
  const names = accountNames()
  const named = new Map(listNamed(env).map(({ name, runId }) => [runId, name]))
  const runs = listRuns(env).map((run): Run => {
    const name = isOwn(run) ? named.get(run.id) : undefined
    return { ...run, user: names.get(run.uid) ?? String(run.uid), ...(name !== undefined && { name }) }
  })
  const now = Date.now()
  if (flags['json'] === true) await writeStdout(`${JSON.stringify(runs)}\n`)
  else await writeStdout(printed([HEADER, ...runs.map((run) => rowOf(run, now))]))
  return 0
})
