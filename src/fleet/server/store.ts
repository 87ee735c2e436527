/**
 * The queue and the agents in one SQLite file. Every method is one step that nothing comes between: the database is this process's own,
 * calls are synchronous, and each is on disk when it returns.
 *
 * A task is `queued`, given to a worker (`running`), and ends once: `done` with the exit code of its command, `failed` without one, or
 * `cancelled`. A worker that falls silent loses its tasks: they are queued again, MOST_ATTEMPTS times in all. Until another attempt begins they
 * are still its tasks: when it speaks again they run, and its report counts.
 *
 * Edge: the database file.
 */
import { rmSync } from 'node:fs'
import sqlite from 'node-sqlite3-wasm'
import { neutralise, SandboxError } from '../../core.ts'
import type { Details, Heartbeat, Registration } from './wire.ts'

/** An agent that says nothing for so long is offline. */
export const OFFLINE_AFTER_MS = 30_000
/** How often a task is given out before it fails: the third machine that dies of it is enough. */
export const MOST_ATTEMPTS = 3
/** Characters of each stream that are kept of a report. */
const KEPT_CHARACTERS = 1024 * 1024

export type TaskState = 'queued' | 'running' | 'done' | 'failed' | 'cancelled'

export interface StoredTask {
  readonly id: string
  readonly command: string
  readonly filename: string
  readonly hasFiles: boolean
  readonly timeoutMs: number | null
  readonly state: TaskState
  /** That runs it, or was the last to. */
  readonly worker: string | null
  readonly attempts: number
  readonly createdMs: number
  readonly startedMs: number | null
  readonly endedMs: number | null
  readonly isCancelRequested: boolean
  readonly exitCode: number | null
  /** Why it failed or was queued again; empty otherwise. */
  readonly message: string
  readonly details: Details
  readonly hasResult: boolean
  /** Needs that the kernel of its worker has to hold. */
  readonly require: readonly string[]
}

export interface NewTask extends Pick<StoredTask, 'id' | 'command' | 'filename' | 'hasFiles' | 'require'> {
  readonly timeoutMs?: number | undefined
}

export interface StoredWorker {
  readonly id: string
  readonly hostname: string
  readonly seenMs: number
  readonly isOnline: boolean
  readonly running: number
  readonly facts: Registration | Heartbeat
}

/** How a task ended, as its worker reports it. */
export interface End extends Pick<StoredTask, 'exitCode' | 'message' | 'details' | 'hasResult'> {
  readonly stdout: string
  readonly stderr: string
  /** The machine was at fault. */
  readonly elsewhere?: boolean
}

/** `repeated`: it is over already. `foreign`: it belongs to another worker, or to none. */
export type Taking = 'taken' | 'repeated' | 'foreign' | 'unknown'

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS tasks (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, command TEXT NOT NULL, filename TEXT NOT NULL, has_files INTEGER NOT NULL,
    timeout_ms INTEGER, state TEXT NOT NULL DEFAULT 'queued', worker TEXT, attempts INTEGER NOT NULL DEFAULT 0, created_ms INTEGER NOT NULL,
    started_ms INTEGER, ended_ms INTEGER, cancel INTEGER NOT NULL DEFAULT 0, exit_code INTEGER, message TEXT NOT NULL DEFAULT '',
    stdout TEXT NOT NULL DEFAULT '', stderr TEXT NOT NULL DEFAULT '', details TEXT NOT NULL DEFAULT '{}', has_result INTEGER NOT NULL DEFAULT 0,
    require TEXT NOT NULL DEFAULT '[]', lost INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE INDEX IF NOT EXISTS tasks_by_state ON tasks (state, seq);
  CREATE TABLE IF NOT EXISTS workers (
    id TEXT PRIMARY KEY, hostname TEXT NOT NULL, seen_ms INTEGER NOT NULL, status TEXT NOT NULL,
    facts TEXT NOT NULL
  ) STRICT;`

/** Named as the fields of a StoredTask. */
const TASK_COLUMNS = `id, command, filename, has_files AS hasFiles, timeout_ms AS timeoutMs, state, worker, attempts,
  created_ms AS createdMs, started_ms AS startedMs, ended_ms AS endedMs, cancel AS isCancelRequested, exit_code AS exitCode, message, details,
  has_result AS hasResult, require`

/** Whether a worker has said at its registration that it holds all that a task needs. One that has said nothing holds nothing. */
const HOLDS_ALL = `NOT EXISTS (SELECT 1 FROM json_each(tasks.require) WHERE value NOT IN
  (SELECT held.value FROM workers, json_each(workers.facts, '$.isolation.holds') AS held WHERE workers.id = ?))`

type Row = Record<string, string | number | null>

export class Store {
  readonly #database: InstanceType<typeof sqlite.Database>

  /** @param file of this process alone: the caller holds a lock on its directory */
  constructor(file: string) {
    // The library's own lock is a directory, which a killed process leaves behind.
    rmSync(`${file}.lock`, { recursive: true, force: true })
    this.#database = new sqlite.Database(file)
    try {
      this.#database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
      this.#check()
      this.#database.exec(SCHEMA)
    } catch (cause) {
      this.#database.close()
      throw damaged(file, cause as Error)
    }
    // A database of an earlier version.
    const columns = this.#rows("SELECT name FROM pragma_table_info('tasks')", []).map(({ name }) => name)
    if (!columns.includes('require'))
      this.#database.exec("ALTER TABLE tasks ADD COLUMN require TEXT NOT NULL DEFAULT '[]'")
    if (this.#rows("SELECT 1 FROM pragma_table_info('workers') WHERE name = 'has_token'", []).length > 0)
      this.#database.exec('ALTER TABLE workers DROP COLUMN has_token')
    if (!columns.includes('lost')) this.#database.exec('ALTER TABLE tasks ADD COLUMN lost INTEGER NOT NULL DEFAULT 0')
  }

  /** A page that is damaged would else end the server at the first request that reads it. */
  #check(): void {
    const found = this.#rows('PRAGMA quick_check(1)', []).map((row) => String(row['quick_check']))
    if (found[0] !== 'ok') throw new Error(found[0])
  }

  close(): void {
    this.#database.close()
  }

  addTask({ id, command, filename, hasFiles, timeoutMs, require }: NewTask, nowMs: number): void {
    this.#run(
      'INSERT INTO tasks (id, command, filename, has_files, timeout_ms, require, created_ms) VALUES (?, ?, ?, ?, ?, ?, ?)',
      [id, command, filename, hasFiles ? 1 : 0, timeoutMs ?? null, JSON.stringify(require), nowMs],
    )
  }

  task(id: string): StoredTask | undefined {
    const [row] = this.#rows(`SELECT ${TASK_COLUMNS} FROM tasks WHERE id = ?`, [id])
    return row === undefined ? undefined : taskOf(row)
  }

  outputOf(id: string): { readonly stdout: string; readonly stderr: string } {
    const [row] = this.#rows('SELECT stdout, stderr FROM tasks WHERE id = ?', [id])
    return { stdout: String(row?.['stdout'] ?? ''), stderr: String(row?.['stderr'] ?? '') }
  }

  /** Newest first. */
  tasks(most = 200): readonly StoredTask[] {
    return this.#rows(`SELECT ${TASK_COLUMNS} FROM tasks ORDER BY seq DESC LIMIT ?`, [most]).map(taskOf)
  }

  /**
   * A worker says who it is, which is also a sign of life.
   * @param kept workers that are kept, those that were seen last. One with a task is kept, too: the name is what its report is believed by.
   */
  register(facts: Registration, { nowMs, kept }: { readonly nowMs: number; readonly kept: number }): void {
    this.#run(
      `INSERT INTO workers (id, hostname, seen_ms, status, facts) VALUES (?, ?, ?, '', ?)
       ON CONFLICT (id) DO UPDATE SET hostname = excluded.hostname, seen_ms = excluded.seen_ms, status = '', facts = excluded.facts`,
      [facts.workerId, facts.hostname, nowMs, JSON.stringify(facts)],
    )
    this.#run(
      `DELETE FROM workers WHERE id NOT IN (SELECT id FROM workers ORDER BY seen_ms DESC LIMIT ?)
         AND id NOT IN (SELECT worker FROM tasks WHERE state IN ('queued', 'running') AND worker IS NOT NULL)`,
      [kept],
    )
  }

  /** @returns false for a worker that never registered */
  heartbeat(facts: Heartbeat, nowMs: number): boolean {
    const seenMs = facts.status === 'OFFLINE' ? 0 : nowMs
    const known = this.#run(
      'UPDATE workers SET seen_ms = ?, status = coalesce(?, status), facts = json_patch(facts, ?) WHERE id = ?',
      [seenMs, facts.status ?? null, JSON.stringify({ ...facts, heardMs: nowMs }), facts.workerId],
    )
    return known === 1
  }

  /** Anything that a worker asks for is a sign of life. */
  seen(worker: string, nowMs: number): boolean {
    return this.#run('UPDATE workers SET seen_ms = ? WHERE id = ?', [nowMs, worker]) === 1
  }

  /** A worker that was silent speaks again: what it was lost with runs there, unless another attempt has begun. @returns the tasks that changed */
  returned(worker: string): readonly string[] {
    const back = `UPDATE tasks SET state = 'running', lost = 0, message = '' WHERE worker = ? AND lost AND state = 'queued' RETURNING id`
    return this.#rows(back, [worker]).map(({ id }) => String(id))
  }

  workers(nowMs: number): readonly StoredWorker[] {
    const counted = `SELECT workers.*, (SELECT count(*) FROM tasks WHERE worker = workers.id AND state = 'running') AS running FROM workers`
    return this.#rows(`${counted} ORDER BY id`, []).map((row) => workerOf(row, nowMs))
  }

  /** Whether there is a task that no worker has. */
  isQueued(): boolean {
    return this.#rows("SELECT 1 FROM tasks WHERE state = 'queued' LIMIT 1", []).length > 0
  }

  /** Gives the oldest queued task to a worker that holds what it needs. */
  take(worker: string, nowMs: number): StoredTask | undefined {
    const [row] = this.#rows(
      `UPDATE tasks SET state = 'running', worker = ?, attempts = attempts + 1, started_ms = ?, lost = 0
       WHERE seq = (SELECT seq FROM tasks WHERE state = 'queued' AND ${HOLDS_ALL} ORDER BY seq LIMIT 1) RETURNING ${TASK_COLUMNS}`,
      [worker, nowMs, worker],
    )
    return row === undefined ? undefined : taskOf(row)
  }

  /** The answer that gave the task out did not arrive: it was never started. */
  giveBack({ id, worker, attempts }: StoredTask): void {
    this.#run(
      `UPDATE tasks SET state = 'queued', worker = NULL, attempts = attempts - 1
       WHERE id = ? AND state = 'running' AND worker IS ? AND attempts = ?`,
      [id, worker, attempts],
    )
  }

  /** Takes a report, once. */
  finish(id: string, worker: string, { end, nowMs }: { readonly end: End; readonly nowMs: number }): Taking {
    const taking = this.mayReport(id, worker)
    if (taking !== 'taken') return taking
    if (end.elsewhere === true || (isCancellation(end) && this.task(id)?.isCancelRequested === false)) {
      const why = end.elsewhere === true ? end.message : `${worker} ended it, and no person had cancelled it`
      this.#queueAgain('id = ?', [id], { why, nowMs })
      return 'taken'
    }
    this.#run(
      `UPDATE tasks SET ended_ms = ?, exit_code = ?, message = ?, stdout = ?, stderr = ?, details = ?, has_result = ?, state = CASE
         WHEN cancel AND (? IS NULL OR ? = ${CANCELLED}) THEN 'cancelled' WHEN ? IS NULL THEN 'failed' ELSE 'done' END WHERE id = ?`,
      [
        nowMs,
        end.exitCode,
        end.message,
        end.stdout.slice(0, KEPT_CHARACTERS),
        end.stderr.slice(0, KEPT_CHARACTERS),
        JSON.stringify(end.details),
        end.hasResult ? 1 : 0,
        end.exitCode,
        end.exitCode,
        end.exitCode,
        id,
      ],
    )
    return 'taken'
  }

  /** The answer that `finish` would give. */
  mayReport(id: string, worker: string): Taking {
    const task = this.task(id)
    if (task === undefined) return 'unknown'
    if (task.worker !== worker) return 'foreign'
    // A worker that was thought to be lost has the result after all, and no other has begun.
    return task.state === 'running' || task.state === 'queued' ? 'taken' : 'repeated'
  }

  /** A queued task is over at once; a running one when its worker has ended it. @returns false for one that is over or unknown */
  requestCancel(id: string, nowMs: number): boolean {
    const asked = this.#run(
      `UPDATE tasks SET cancel = 1, ended_ms = CASE state WHEN 'queued' THEN ? END, state = CASE state WHEN 'queued' THEN 'cancelled' ELSE
         state END WHERE id = ? AND state IN ('queued', 'running')`,
      [nowMs, id],
    )
    return asked === 1
  }

  /** A worker that starts anew runs nothing of what it was given before. @returns the tasks that changed */
  restarted(worker: string, nowMs: number): readonly string[] {
    const why = `${worker} has started anew while it ran`
    return this.#queueAgain("worker = ? AND (state = 'running' OR lost AND state = 'queued')", [worker], { why, nowMs })
  }

  /**
   * Takes tasks from workers that are offline, and from those that say they do not run what they were given long ago: the answer that gave
   * it was lost. A worker with several slots may be idle and run something; then it says how many, and ours say which.
   * @returns the tasks that changed
   */
  takeBack(nowMs: number): readonly string[] {
    const long = nowMs - OFFLINE_AFTER_MS
    const lost = `state = 'running' AND worker NOT IN (SELECT id FROM workers WHERE seen_ms > ?)`
    const idle = `state = 'running' AND started_ms <= ? AND worker IN (SELECT id FROM workers WHERE status = 'IDLE' AND facts ->> 'dockerContainers' = 0)`
    // Named by a heartbeat that is not older than the task.
    const unnamed = `state = 'running' AND EXISTS (SELECT 1 FROM workers WHERE workers.id = tasks.worker AND facts -> 'jobs' IS NOT NULL
      AND started_ms <= facts ->> 'heardMs' - ? AND tasks.id NOT IN (SELECT value FROM json_each(facts, '$.jobs')))`
    return [
      ...this.#queueAgain(lost, [long], { why: 'its agent went offline while it ran', nowMs, isLost: true }),
      ...this.#queueAgain(idle, [long], { why: 'its agent says that it runs nothing', nowMs }),
      ...this.#queueAgain(unnamed, [OFFLINE_AFTER_MS], { why: 'its agent says that it does not run it', nowMs }),
    ]
  }

  /** @param kept tasks that are over and kept @returns those that were forgotten: their files are of no use any more */
  forgetOldest(kept: number): readonly string[] {
    const over = "state NOT IN ('queued', 'running')"
    const newest = `SELECT seq FROM tasks WHERE ${over} ORDER BY seq DESC LIMIT ?`
    return this.#rows(`DELETE FROM tasks WHERE ${over} AND seq NOT IN (${newest}) RETURNING id`, [kept]).map(({ id }) =>
      String(id),
    )
  }

  #queueAgain(
    where: string,
    values: readonly (string | number)[],
    { why, nowMs, isLost = false }: { readonly why: string; readonly nowMs: number; readonly isLost?: boolean },
  ): readonly string[] {
    // An UPDATE sees the old values on its right side.
    const next = `CASE WHEN cancel THEN 'cancelled' WHEN attempts >= ${MOST_ATTEMPTS} THEN 'failed' ELSE 'queued' END`
    const isOver = `cancel OR attempts >= ${MOST_ATTEMPTS}`
    return this.#rows(
      `UPDATE tasks SET state = ${next}, ended_ms = CASE WHEN ${isOver} THEN ? END, message = ?, lost = ?
       WHERE ${where} RETURNING id`,
      [nowMs, why, isLost ? 1 : 0, ...values],
    ).map(({ id }) => String(id))
  }

  #rows(sql: string, values: readonly (string | number | null)[]): readonly Row[] {
    return this.#database.all(sql, [...values]) as unknown as readonly Row[]
  }

  #run(sql: string, values: readonly (string | number | null)[]): number {
    return this.#database.run(sql, [...values]).changes
  }
}

const damaged = (file: string, cause: Error): SandboxError =>
  new SandboxError('SETUP_FAILED', `${file}: the database cannot be used: ${neutralise(cause.message)}`, {
    hint: `mv ${file} ${file}.damaged   # begins with an empty queue; or restore a copy`,
    cause,
  })

/** Exit code of a run that was cancelled (docs/reference/fleet.md). */
const CANCELLED = 130

/** A command may end with that code, too; then its agent says `exit` or `signal`. */
const isCancellation = ({ exitCode, details: { reason } }: End): boolean =>
  reason === 'cancelled' || (reason === undefined && exitCode === CANCELLED)

/** SQLite has neither truth values nor lists. */
const taskOf = (row: Row): StoredTask =>
  ({
    ...row,
    hasFiles: row['hasFiles'] === 1,
    isCancelRequested: row['isCancelRequested'] === 1,
    details: JSON.parse(String(row['details'])),
    hasResult: row['hasResult'] === 1,
    require: JSON.parse(String(row['require'])),
  }) as StoredTask

const workerOf = (row: Row, nowMs: number): StoredWorker => ({
  id: String(row['id']),
  hostname: String(row['hostname']),
  seenMs: Number(row['seen_ms']),
  isOnline: Number(row['seen_ms']) > nowMs - OFFLINE_AFTER_MS,
  running: Number(row['running']),
  facts: JSON.parse(String(row['facts'])) as Registration,
})
