/** The engine at work: so many slots, each of which takes a task, runs it and reports it, until there are none or it is to stop. */
import { neutralise } from '../core.ts'
import { type Engine, runTask } from './engine.ts'
import type { Task, TaskSource } from './port.ts'

export interface Service {
  readonly source: TaskSource
  readonly engine: Engine
  /** Tasks at once. */
  readonly slots: number
  /** Aborted: no more tasks are taken, those that run go on. */
  readonly drain: AbortSignal
  /** Aborted: tasks that run are ended. */
  readonly end: AbortSignal
  /** One line for the operator. */
  readonly log: (line: string) => void
}

/**
 * Resolves when nothing runs any more.
 * @throws what `take` has failed with
 */
export async function serve(service: Service): Promise<void> {
  // A source that has failed gets no second question, but what runs is reported.
  const broken = new AbortController()
  const drain = AbortSignal.any([service.drain, service.end, broken.signal])
  const slots = Array.from({ length: service.slots }, async () => {
    try {
      await serveSlot({ ...service, drain })
    } catch (error) {
      broken.abort()
      throw error
    }
  })
  const failed = (await Promise.allSettled(slots)).find((slot) => slot.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}

async function serveSlot(service: Service): Promise<void> {
  const { source, drain } = service
  while (!drain.aborted) {
    const task = await source.take(drain)
    if (task === undefined) return
    await serveTask(service, task)
  }
}

async function serveTask({ source, engine, end, log }: Service, task: Task): Promise<void> {
  const report = await runTask({ task, engine, source, signal: end })
  await source
    .report(task, report)
    .catch((error: unknown) => log(`${neutralise(task.id)}: not reported: ${neutralise((error as Error).message)}`))
}
