/**
 * Takes away what runs left whose runner is gone: `kill -9`, a crash, a machine that went down.
 * Edge: processes.
 */

import { LABEL, PROTECT_LABEL, RUNNER_LABEL, sessionPrefix } from '../backend/docker.ts'
import type { DockerInputs } from '../backend/docker-client.ts'
import { isGone } from '../backend/docker-inputs.ts'
import { ask, removeContainer } from './docker-client.ts'
import { removeStalePlaceholders } from './docker-placeholder.ts'

interface Seen {
  readonly Id: string
  /** docker puts a slash before it. */
  readonly Name: string
  readonly Created: string
  readonly State: { readonly Status: string }
  readonly Config: { readonly Labels: Readonly<Record<string, string>> }
}

/** What each kind of container is, for the decision whether it may go. */
export interface Candidate {
  readonly kind: string
  readonly running: boolean
  readonly runnerIsGone: boolean
  readonly ageMs: number
}

/** Milliseconds after which a stopped container of ours is litter, whoever made it: nobody needs that long to read its end. */
const LITTER_AGE_MS = 3_600_000

/** A session container outlives its runner on purpose, but not its own end. */
export function mayGo({ kind, running, runnerIsGone, ageMs }: Candidate): boolean {
  if (running) return kind === 'run' && runnerIsGone
  return runnerIsGone || ageMs > LITTER_AGE_MS
}

/**
 * @param everything also containers of the caller's sessions that are still running; a daemon may serve other users, too
 * @returns how many containers were removed
 */
export async function sweep(
  docker: DockerInputs,
  { now, everything = false }: { now: number; everything?: boolean },
): Promise<number> {
  const gone = (await ours(docker)).filter(
    (seen) => mayGo(candidate(seen, now)) || (everything && isOwnSession(seen, docker)),
  )
  await Promise.all(gone.map(({ Id }) => removeContainer(docker, Id)))
  await removeStalePlaceholders(gone.flatMap(protectedBy))
  return gone.length
}

/** Containers of ours, running or not. */
async function ours(docker: DockerInputs): Promise<readonly Seen[]> {
  const listed = await ask(docker, ['ps', '--all', '--quiet', '--no-trunc', '--filter', `label=${LABEL}`])
  const ids = listed.stdout.split('\n').filter((id) => id !== '')
  if (!listed.ok || ids.length === 0) return []
  const said = await ask(docker, ['container', 'inspect', ...ids])
  // One that ended between the two questions makes the client fail, but it still prints the others.
  return said.stdout === '' ? [] : (JSON.parse(said.stdout) as readonly Seen[])
}

function isOwnSession({ Name, Config }: Seen, { caller }: DockerInputs): boolean {
  return Config.Labels[LABEL] === 'session' && Name.replace('/', '').startsWith(sessionPrefix(caller.uid))
}

function candidate({ Created, State, Config }: Seen, now: number): Candidate {
  return {
    kind: Config.Labels[LABEL] ?? '',
    running: State.Status === 'running',
    runnerIsGone: isGone(Config.Labels[RUNNER_LABEL] ?? ''),
    ageMs: now - Date.parse(Created),
  }
}

function protectedBy({ Config }: Seen): readonly string[] {
  const list = Config.Labels[PROTECT_LABEL]
  return list === undefined ? [] : (JSON.parse(list) as readonly string[])
}
