/**
 * Server-sent events for browsers: changes of tasks and agents and pieces of output. The output of running tasks is kept only here,
 * since the report at the end holds all of it.
 */
import type { ServerResponse } from 'node:http'

/** Characters of each stream that are kept of a running task. */
const KEPT_CHARACTERS = 1024 * 1024
/** A browser that has fallen so many bytes behind is cut off; it connects again and gets the whole picture. */
const MOST_BEHIND = 4 * 1024 * 1024

export interface Output {
  readonly stdout: string
  readonly stderr: string
}

export class Live {
  readonly #watchers = new Set<ServerResponse>()
  readonly #output = new Map<string, Output>()

  /** Whether a browser listens: without one nothing is gathered. */
  get isWatched(): boolean {
    return this.#watchers.size > 0
  }

  /** @param first what the watcher gets at once */
  watch(response: ServerResponse, first: unknown): void {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' })
    this.#watchers.add(response)
    response.on('close', () => this.#watchers.delete(response))
    response.write(eventText('all', first))
  }

  tell(event: 'task' | 'agent' | 'output', data: unknown): void {
    const text = eventText(event, data)
    for (const watcher of this.#watchers) {
      if (watcher.writableLength > MOST_BEHIND) watcher.destroy()
      else watcher.write(text)
    }
  }

  add(id: string, stream: 'stdout' | 'stderr', text: string): void {
    const before = this.outputOf(id)
    const kept = text.slice(0, KEPT_CHARACTERS - before[stream].length)
    if (kept === '') return
    this.#output.set(id, { ...before, [stream]: before[stream] + kept })
    // Where it belongs, so that a browser that has fetched a part of it adds the rest.
    this.tell('output', { id, stream, from: before[stream].length, text: kept })
  }

  outputOf(id: string): Output {
    return this.#output.get(id) ?? { stdout: '', stderr: '' }
  }

  /** The task is over or begins again. */
  forget(id: string): void {
    this.#output.delete(id)
  }

  close(): void {
    for (const watcher of this.#watchers) watcher.destroy()
  }
}

/** One line of data: JSON has none in it. */
const eventText = (event: string, data: unknown): string => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`
