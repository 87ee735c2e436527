/**
 * Sandboxes that stay in the background under a name: a directory for each, next to the records of live runs. It is there from the
 * moment at which the name is taken until somebody forgets it; the process that supervises the run writes it. Nothing is run by what it says:
 * the run's own record (native/lib/run-record.h) says what lives, and what is to be removed after a crash.
 * Edge: the file system.
 */
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { SandboxError } from '../error.ts'
import { ownDirectory } from '../host/own-directory.ts'
import { tryLock } from '../os/file-lock.ts'
import { makeDirectories } from '../os/make-directories.ts'
import { isOwnDirectory, readPrivateFile, writePrivateFile } from '../os/private-files.ts'
import { isGone, isHere, ownIdentity } from '../os/process-identity.ts'
import { didYouMean } from '../text/did-you-mean.ts'
import { meantBy } from '../text/shortened-id.ts'
import type { Environment } from './caller.ts'

export interface NamedSandbox {
  readonly name: string
  readonly runId: string
  readonly command: readonly string[]
  /** Where it was asked for. */
  readonly directory: string
  /** Seconds since 1970. */
  readonly started: number
  /** Identity of the process that supervises it (src/os/process-identity.ts). */
  readonly supervisor: string
}

/** `lost`: its supervisor has ended without a result, and with it the run. */
export type State = 'running' | 'ended' | 'lost'

const NAME = /^[a-z0-9][a-z0-9_.-]{0,62}$/
const MOST_BYTES = 16 << 20
const [STATE_FILE, RESULT_FILE] = ['state.json', 'result.json']
/** Locked while the process that supervises the run lives. */
const SUPERVISOR = 'supervisor'

const own = () => process.getuid?.() ?? -1
const placeOf = (env: Environment): string => join(ownDirectory(env, own()), 'named')

/** The directory of a name. @throws SandboxError USAGE for an invalid name */
export function directoryOfNamed(env: Environment, name: string): string {
  if (NAME.test(name)) return join(placeOf(env), name)
  throw new SandboxError('USAGE', `${JSON.stringify(name)} is no name of a sandbox.`, {
    hint: 'up to 63 lower-case letters, digits, and after the first also _ . -',
  })
}

/** Takes the name, for the life of this process. @throws SandboxError SANDBOX_EXISTS where it is taken */
export function claimName(env: Environment, sandbox: Omit<NamedSandbox, 'supervisor'>): string {
  const directory = directoryOfNamed(env, sandbox.name)
  makeDirectories(placeOf(env), 0o700)
  if (!isOwnDirectory(placeOf(env), own())) throw unusable(placeOf(env))
  try {
    mkdirSync(directory, { mode: 0o700 })
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'EEXIST') throw taken(sandbox.name)
    throw unusable(directory)
  }
  const isWritten = write(directory, STATE_FILE, { ...sandbox, supervisor: ownIdentity() })
  if (!isWritten || tryLock(join(directory, SUPERVISOR)) === undefined) throw unusable(directory)
  return directory
}

const write = (directory: string, name: string, content: object): boolean =>
  writePrivateFile({ directory, name, uid: own() }, JSON.stringify(content))

function taken(name: string): SandboxError {
  return new SandboxError('SANDBOX_EXISTS', `a sandbox called ${name} was started before.`, {
    hint: `llm-do stop ${name}, or another name`,
  })
}

function unusable(directory: string): SandboxError {
  return new SandboxError('SETUP_FAILED', `${directory}: cannot be written, or is not this user's alone.`, {
    hint: `ls -ld ${directory}`,
  })
}

export const keepResult = (directory: string, result: object): boolean => write(directory, RESULT_FILE, result)

/** Its files, log and result; the name is free again. */
export function forgetNamed(directory: string): void {
  rmSync(directory, { recursive: true, force: true })
}

function readJson(directory: string, name: string): unknown {
  const bytes = readPrivateFile(join(directory, name), { uid: own(), most: MOST_BYTES })
  return bytes === undefined ? undefined : JSON.parse(bytes.toString('utf8'))
}

/** The result that `llm-do run` has left; undefined while it runs, and where it was lost. */
export const resultOfNamed = (env: Environment, { name }: NamedSandbox): unknown =>
  readJson(directoryOfNamed(env, name), RESULT_FILE)

/** Of another boot or pid namespace, as in a container that was started again, only the kernel knows: its lock. */
export function isSupervised(env: Environment, { name, supervisor }: NamedSandbox): boolean {
  if (isHere(supervisor)) return !isGone(supervisor)
  const lock = tryLock(join(directoryOfNamed(env, name), SUPERVISOR))
  lock?.release()
  return lock === undefined
}

export function stateOf(env: Environment, sandbox: NamedSandbox): State {
  const isOver = !isSupervised(env, sandbox)
  if (resultOfNamed(env, sandbox) !== undefined) return 'ended'
  return isOver ? 'lost' : 'running'
}

function readNamed(env: Environment, name: string): NamedSandbox | undefined {
  if (!isOwnDirectory(placeOf(env), own())) return undefined
  return readJson(directoryOfNamed(env, name), STATE_FILE) as NamedSandbox | undefined
}

/**
 * @param word its name, the ID of its run, or the unique beginning of that ID
 * @throws SandboxError SANDBOX_NOT_FOUND
 */
export function findNamed(env: Environment, word: string): NamedSandbox {
  const named = listNamed(env).map((sandbox) => ({ id: sandbox.runId, sandbox }))
  const same = named.filter(({ sandbox }) => sandbox.name === word)
  const [found, other] = same.length > 0 ? same : meantBy(word, named)
  if (found !== undefined && other === undefined) return found.sandbox
  throw new SandboxError(
    'SANDBOX_NOT_FOUND',
    other === undefined
      ? `no sandbox is called ${word}.${didYouMean(
          word,
          named.map(({ sandbox }) => sandbox.name),
        )}`
      : `several sandboxes are called ${word}.`,
    {
      hint: 'llm-do ps, or llm-do ps --ended',
    },
  )
}

/** @throws SandboxError SANDBOX_NOT_FOUND where none was started in this directory */
export function lastNamed(env: Environment, directory: string): NamedSandbox {
  const here = listNamed(env).filter((sandbox) => sandbox.directory === directory)
  const [last] = here.toSorted((one, other) => other.started - one.started)
  if (last !== undefined) return last
  throw new SandboxError('SANDBOX_NOT_FOUND', 'no sandbox in the background was started in this directory.', {
    hint: 'llm-do ps, or llm-do ps --ended',
  })
}

/** The ID of a run by the name of its sandbox; any other word as it is. */
export const runIdOf = (env: Environment, word: string): string =>
  listNamed(env).find(({ name }) => name === word)?.runId ?? word

export function listNamed(env: Environment): readonly NamedSandbox[] {
  if (!isOwnDirectory(placeOf(env), own())) return []
  const names = readdirSync(placeOf(env)).filter((name) => NAME.test(name))
  return names.sort().flatMap((name) => readNamed(env, name) ?? [])
}
