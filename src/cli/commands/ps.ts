/** `llm-do ps`: the runs of this user that are alive. */
import { neutralise } from '../../report/text.ts'
import type { Environment } from '../call.ts'
import { runRunsProgram } from '../run-records.ts'
import { writeStdout } from '../stdio.ts'
import { subcommand } from '../subcommand.ts'

/** A line of `runs list`. */
interface Run {
  readonly id: string
  readonly pid: number
  /** Seconds since 1970. */
  readonly started: number
  readonly command: readonly string[]
  readonly profile: string
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
  await writeStdout(json ? `${JSON.stringify(found)}\n` : table([['ID', 'STARTED', 'PROFILE', 'DIRECTORY'], ...rows]))
  return 0
}

export const ps = subcommand('ps', async ({ flags }, { env }) => {
  if (flags['cow'] === true) return await listWaiting(env, flags['json'] === true)
  const lines = (await runRunsProgram(env, 'list')).stdout.split('\n').filter((line) => line !== '')
  if (flags['json'] === true) await writeStdout(`[${lines.join(',')}]\n`)
  else await writeStdout(table([HEADER, ...lines.map((line) => rowOf(JSON.parse(line) as Run))]))
  return 0
})
