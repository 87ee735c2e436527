/**
 * The engine of fleets for the source of a program: any queue becomes one by the four methods of port.ts; docs/reference/library.md shows it.
 * Edge: temporary files, process.env.
 */
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkOptions, type ExecOptions, layersOf, refuseVariables, TaskPlans } from '../core.ts'
import type { TaskSource } from './port.ts'
import { serve } from './serve.ts'
import { removeTree } from './task-files.ts'
import { TaskPlaces } from './task-places.ts'

export interface ServeTasksOptions extends Pick<ExecOptions, 'policy' | 'layers' | 'env'> {
  readonly source: TaskSource
  /** Name or path of what every task runs under, and can only narrow; default `task`. */
  readonly profile?: string
  /** Tasks at once, 1 to 256; default 1. */
  readonly slots?: number
  /** Aborted: no more tasks are taken, those that run go on to their end. */
  readonly signal?: AbortSignal
  /** Aborted: what runs is ended, and reported as `refused` with `elsewhere`. */
  readonly end?: AbortSignal
  /** Gets messages for people, one line each; default: they are dropped. */
  readonly log?: (line: string) => void
}

/**
 * Runs the tasks of `source`, each command in a new sandbox, until the source has none or `signal` is aborted. Nothing of a task is
 * left when it is reported.
 * @throws OptionsError; the error of `take`, after the running tasks have ended
 */
export async function serveTasks(options: ServeTasksOptions): Promise<void> {
  checkOptions('serveTasks', options)
  const { source, profile = 'task', env = process.env, slots = 1, log = () => undefined } = options
  const { signal: drain = new AbortController().signal, end = new AbortController().signal } = options
  refuseVariables(env)
  const directory = await mkdtemp(join(tmpdir(), 'llm-do-tasks.'))
  try {
    const layers = layersOf(options, process.cwd())
    const engine = { profile, layers, env, places: new TaskPlaces(directory), plans: new TaskPlans() }
    await serve({ source, engine, slots, drain, end, log })
  } finally {
    await removeTree(directory)
  }
}
