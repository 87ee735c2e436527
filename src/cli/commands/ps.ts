/** `llm-do ps`: the runs of this user that are alive. */
import { neutralise } from '../../report/text.ts'
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

export const ps = subcommand('ps', async ({ flags }, { env }) => {
  const lines = (await runRunsProgram(env, 'list')).stdout.split('\n').filter((line) => line !== '')
  if (flags['json'] === true) await writeStdout(`[${lines.join(',')}]\n`)
  else await writeStdout(table([HEADER, ...lines.map((line) => rowOf(JSON.parse(line) as Run))]))
  return 0
})
