/**
 * Asks systemd for a delegated group, once per boot and user.
 * Edge: systemctl and systemd-run.
 *
 * A scope for every run would cost milliseconds and a message to two managers; a unit without processes loses its group.
 * So one transient service is started (StartTransientUnit, on the user's bus, for root on the system's), whose only process
 * sleeps: it holds the group open, and runs come and go below it without systemd hearing of them.
 */
import { existsSync } from 'node:fs'
import { runProgram, SYSTEM_PATH } from '../os/run-program.ts'

export type Manager = 'user' | 'system'

/** The one unit. `systemctl --user stop llm-do-exec` takes it away again; the next look makes a new one. */
export const UNIT = 'llm-do-exec.service'

/** A manager that does not answer within this time is not going to. */
const PATIENCE_MS = 10_000

const PROPERTIES = [
  'Type=exec',
  'Delegate=yes',
  // One run's memory kill must not end the unit and with it every other run.
  'OOMPolicy=continue',
  'TasksMax=infinity',
] as const

/** sd_booted(3): this directory is there if and only if systemd is the service manager. */
export const isSystemdRunning = (): boolean => existsSync('/run/systemd/system')

export interface UnitFact {
  readonly active: boolean
  readonly delegated: boolean
  /** Path in the cgroup tree, empty when it has none. */
  readonly path: string
}

interface UnitRequest {
  readonly manager: Manager
  readonly uid: number
  readonly unit: string
}

const run = (file: string, { manager, uid }: UnitRequest, words: readonly string[]) =>
  runProgram({
    file,
    argv: manager === 'user' ? ['--user', ...words] : words,
    env: { PATH: SYSTEM_PATH, XDG_RUNTIME_DIR: `/run/user/${uid}` },
    patienceMs: PATIENCE_MS,
  })

/** The manager's answer about a unit; the reason in words when it does not answer, and whether it may only have been slow. */
export async function showUnit(
  request: UnitRequest,
): Promise<UnitFact | { readonly why: string; readonly isPassing: boolean }> {
  const shown = await run('systemctl', request, ['show', '--property=ActiveState,Delegate,ControlGroup', request.unit])
  if (!shown.ok) return { why: shown.why, isPassing: !shown.inTime }
  const lines = new Set(shown.stdout.split('\n'))
  const path = [...lines].find((line) => line.startsWith('ControlGroup='))?.slice('ControlGroup='.length) ?? ''
  return { active: lines.has('ActiveState=active'), delegated: lines.has('Delegate=yes'), path }
}

/** Starts our unit and waits for its job; harmless when another run has just done so. */
export async function startUnit(request: UnitRequest): Promise<void> {
  const properties = PROPERTIES.map((property) => `--property=${property}`)
  const words = [
    '--quiet',
    '--collect',
    `--unit=${request.unit}`,
    '--description=llm-do exec: parent of sandboxes',
    ...properties,
  ]
  await run('systemd-run', request, [...words, '--', 'sleep', 'infinity'])
}
