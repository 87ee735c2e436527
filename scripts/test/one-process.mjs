// A pool of vitest with one process for all files of a lane.
//
// vitest ends a process with the run that it was started for, and a lane has a run for each file: starting node and loading the same 400
// modules each time cost 1.5 s of processor time a file, now 0.2 s. The product's modules stay loaded; those of the tests are loaded anew,
// since they hold what belongs to one file: its hooks, its home, its daemons.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { ForksPoolWorker } from 'vitest/node'
import { checkout } from './programs.mjs'

const testModules = readdirSync(join(checkout, 'tests'), { recursive: true })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => join(checkout, 'tests', name))

const answer = (type) => ({ type, __vitest_worker_response__: true })

/** One run's view of the process, which outlives it: only the first `start` reaches it, and no `stop`. */
class Run {
  name = 'one-process'
  cacheFs = true
  #listeners = []
  #kept

  constructor(kept) {
    this.#kept = kept
  }

  on(event, listener) {
    this.#listeners.push([event, listener])
    this.#kept.on(event, listener)
  }

  off(event, listener) {
    this.#listeners = this.#listeners.filter(([own, other]) => own !== event || other !== listener)
    this.#kept.off(event, listener)
  }

  async start() {
    if (this.#kept.isStarted) return
    await this.#kept.start()
    this.#kept.on('exit', this.#kept.onExit)
  }

  async stop() {
    for (const [event, listener] of this.#listeners) this.#kept.off(event, listener)
  }

  send(message) {
    if (message.type === 'stop') return this.#reply(answer('stopped'))
    if (message.type === 'start' && this.#kept.isStarted) return this.#reply(answer('started'))
    this.#kept.isStarted = true
    const { context } = message
    this.#kept.send(
      message.type === 'run' ? { ...message, context: { ...context, invalidates: testModules } } : message,
    )
  }

  deserialize(data) {
    return data
  }

  #reply(message) {
    for (const [event, listener] of this.#listeners) if (event === 'message') queueMicrotask(() => listener(message))
  }
}

/** For the option `pool` of vitest. A process that ended is replaced by the next run. */
export function oneProcess() {
  let kept
  const start = (options) => {
    const worker = new ForksPoolWorker(options)
    const onExit = () => (kept = undefined)
    return Object.assign(worker, { isStarted: false, onExit })
  }
  return {
    name: 'one-process',
    createPoolWorker: (options) => {
      kept ??= start(options)
      return new Run(kept)
    },
  }
}
