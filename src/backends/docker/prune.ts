/**
 * Takes away what runs left whose runner is gone: `kill -9`, a crash, a machine that went down.
 * Edge: processes, files in the user's runtime directory.
 */

import { rmSync } from 'node:fs'
import { isGone } from '../run-kit.ts'
import { LABEL, RUNNER_LABEL, sessionDirectory, sessionPrefix } from './build.ts'
import { removeContainer, runClient } from './client.ts'
import type { DockerInputs } from './command-environment.ts'
import { type HeldLock, takeSession } from './session-lock.ts'

interface ObservedContainer {
  readonly Id: string
  /** docker puts a slash before it. */
  readonly Name: string
  readonly Created: string
  readonly State: { readonly Status: string }
  /** Commands that are being executed in it; null or empty when there are none. */
  readonly ExecIDs?: readonly string[] | null
  readonly Config: { readonly Labels: Readonly<Record<string, string>> }
}

/** Facts that decide whether a container may be removed. */
export interface Candidate {
  readonly kind: string
  readonly running: boolean
  readonly runnerIsGone: boolean
  readonly ageMs: number
}

/** Milliseconds after which our stopped containers are removed, whichever runner made them: reading the end never takes that long. */
const LITTER_AGE_MS = 3_600_000

/** A session container outlives its runner on purpose, but not its own end. */
export function mayGo({ kind, running, runnerIsGone, ageMs }: Candidate): boolean {
  if (running) return kind === 'run' && runnerIsGone
  return runnerIsGone || ageMs > LITTER_AGE_MS
}

export interface SweepInputs {
  /** Milliseconds since 1970. */
  readonly now: number
  /** The caller's directory of runs: only sessions that it knows are ended. */
  readonly runsDirectory: string
  /** Ends those that go on, too, where no run is inside. */
  readonly endsSessions?: boolean
}

/** @returns how many containers were removed; a daemon may serve other users, whose sessions are left alone */
export async function sweep(
  docker: DockerInputs,
  { now, runsDirectory, endsSessions = false }: SweepInputs,
): Promise<number> {
  const seen = await ours(docker)
  const gone = seen.filter((one) => mayGo(candidate(one, now)))
  const own = seen.filter((one) => isOwnSession(one, docker))
  const ended = own.filter((one) => gone.includes(one) || (endsSessions && isQuiet(one)))
  const held = await hold(ended, runsDirectory)
  const all = [...gone.filter((one) => !own.includes(one)), ...held.map(({ container }) => container)]
  try {
    await Promise.all(all.map(({ Id }) => removeContainer(docker, Id)))
    for (const { directory } of held) rmSync(directory, { recursive: true, force: true })
  } finally {
    for (const { release } of held) release()
  }
  return all.length
}

/** Also of a run on another machine, or of another login, whose lock is not ours to see. */
const isQuiet = ({ ExecIDs }: ObservedContainer): boolean => (ExecIDs ?? []).length === 0

interface HeldSession extends HeldLock {
  readonly container: ObservedContainer
  readonly directory: string
}

/** Sessions that no runner of this machine uses or creates; none can be entered while they are ended. */
async function hold(sessions: readonly ObservedContainer[], runsDirectory: string): Promise<readonly HeldSession[]> {
  const locks = await Promise.all(sessions.map((container) => takeSession(runsDirectory, nameOf(container))))
  return sessions.flatMap((container, at) => {
    const [lock, directory] = [locks[at], sessionDirectory(runsDirectory, nameOf(container))]
    return lock === undefined ? [] : [{ container, directory, ...lock }]
  })
}

const nameOf = ({ Name }: ObservedContainer): string => Name.replace('/', '')

/** Our containers, running or not. */
async function ours(docker: DockerInputs): Promise<readonly ObservedContainer[]> {
  const listed = await runClient(docker, ['ps', '--all', '--quiet', '--no-trunc', '--filter', `label=${LABEL}`])
  const ids = listed.stdout.split('\n').filter((id) => id !== '')
  if (!listed.ok || ids.length === 0) return []
  const reply = await runClient(docker, ['container', 'inspect', ...ids])
  // One that ended between the two questions makes the client fail, but it still prints the others.
  return reply.stdout === '' ? [] : (JSON.parse(reply.stdout) as readonly ObservedContainer[])
}

function isOwnSession(seen: ObservedContainer, { caller }: DockerInputs): boolean {
  return seen.Config.Labels[LABEL] === 'session' && nameOf(seen).startsWith(sessionPrefix(caller.uid))
}

function candidate({ Created, State, Config }: ObservedContainer, now: number): Candidate {
  return {
    kind: Config.Labels[LABEL] ?? '',
    running: State.Status === 'running',
    runnerIsGone: isGone(Config.Labels[RUNNER_LABEL] ?? ''),
    ageMs: now - Date.parse(Created),
  }
}
