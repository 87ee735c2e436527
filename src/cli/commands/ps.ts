/**
 * `llm-do ps`: the runs of this user that are alive; as root those of the others, too.
 *
 * Edge: the clock, the list of accounts.
 */
import { readFileSync } from 'node:fs'
import { ACCOUNTS, namesOfAccounts } from '../../host/accounts.ts'
import { table } from '../../report/table.ts'
import { neutralise } from '../../report/text.ts'
import { formatAge } from '../../text/units.ts'
import type { Environment } from '../call.ts'
import { listRuns, type RunLine } from '../run-records.ts'
import { writeStdout } from '../stdio.ts'
import { subcommand } from '../subcommand.ts'

interface Run extends RunLine {
  /** The number where the account has no name here. */
  readonly user: string
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

const HEADER = ['ID', 'PID', 'USER', 'AGE', 'PROFILE', 'DIRECTORY', 'COMMAND'] as const
/** Of a command, in a table. */
const SHOWN_CHARACTERS = 60

function rowOf({ id, pid, user, started, profile, directory, command }: Run, nowMs: number): readonly string[] {
  const shown = neutralise(command.join(' '))
  const cut = shown.length > SHOWN_CHARACTERS ? `${shown.slice(0, SHOWN_CHARACTERS)}...` : shown
  const age = formatAge(nowMs - started * 1000)
  return [neutralise(id), String(pid), user, age, neutralise(profile), neutralise(directory) || '-', cut]
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

export const ps = subcommand('ps', async ({ flags }, { env }) => {
  if (flags['cow'] === true) return await listWaiting(env, flags['json'] === true)
  const names = accountNames()
  const runs = (await listRuns(env)).map((run): Run => ({ ...run, user: names.get(run.uid) ?? String(run.uid) }))
  const now = Date.now()
  if (flags['json'] === true) await writeStdout(`${JSON.stringify(runs)}\n`)
  else await writeStdout(printed([HEADER, ...runs.map((run) => rowOf(run, now))]))
  return 0
})
