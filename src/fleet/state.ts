/**
 * Where an agent keeps what must outlive it, by its server and its name: the journal and the directories of its tasks.
 * Edge: the file system.
 */
import { createHash } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import {
  type Environment,
  type HeldLock,
  holderOf,
  isOwnDirectory,
  lockOf,
  makeDirectories,
  SandboxError,
  tryLock,
} from '../core.ts'
import { removeTree } from './task-files.ts'

export interface AgentState {
  readonly journal: string
  readonly tasks: string
  readonly lock: HeldLock
}

/** @returns undefined where the user has no home */
function stateDirectory({ XDG_STATE_HOME: said = '', HOME: home = '' }: Environment, uid: number): string | undefined {
  if (said.startsWith('/')) return join(said, 'llm-do')
  if (uid === 0) return '/var/lib/llm-do'
  return home.startsWith('/') ? join(home, '.local/state/llm-do') : undefined
}

/**
 * Takes the place of an agent, and removes what one before it has left there.
 * @throws SandboxError SETUP_FAILED where it cannot be had, or another agent of this name runs
 */
export async function openState(
  env: Environment,
  uid: number,
  { server, workerId }: { server: URL; workerId: string },
): Promise<AgentState> {
  const base = stateDirectory(env, uid)
  if (base === undefined)
    throw failed('there is no directory for the state of an agent', 'export HOME=/the/home/directory')
  const name = createHash('sha256').update(`${server.href}\0${workerId}`).digest('hex').slice(0, 16)
  const directory = join(base, 'fleet', name)
  const tasks = join(directory, 'tasks')
  makeDirectories(tasks, 0o700)
  for (const place of [directory, tasks])
    if (!isOwnDirectory(place, uid)) throw failed(`${place} is not a private directory of this user`, `ls -ld ${place}`)
  const agent = join(directory, 'agent')
  const lock = tryLock(agent)
  if (lock === undefined)
    throw failed(
      `an agent called ${workerId} of this server runs here already: ${lockOf(agent)} is locked by ${holderOf(lockOf(agent))}`,
      'export WORKER_ID=another-name',
    )
  for (const left of readdirSync(tasks)) await removeTree(join(tasks, left))
  return { journal: join(directory, 'journal'), tasks, lock }
}

const failed = (message: string, hint: string): SandboxError => new SandboxError('SETUP_FAILED', message, { hint })
