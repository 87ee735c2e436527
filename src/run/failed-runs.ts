/**
 * The last runs that failed, for `llm-do why`: a file for each, next to the records of live runs, written here and by
 * native/client/failed-run.c. It holds the command line and where it was written, and no value of a variable.
 * Edge: the file system, the clock.
 */
import { fstatSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { FAILED_RUN_MAGIC, FAILED_RUNS_DIRECTORY, FAILED_RUNS_MAX } from '../contract.ts'
import { SandboxError } from '../error.ts'
import { ownDirectory } from '../host/own-directory.ts'
import { orElse } from '../os/look.ts'
import {
  dropOldest,
  isOwnDirectory,
  makePrivateDirectory,
  readPrivateFile,
  writePrivateFile,
} from '../os/private-files.ts'
import type { Denial } from '../report/result.ts'
import { meantBy } from '../text/shortened-id.ts'
import type { Environment } from './caller.ts'
import { now } from './run-id.ts'

export interface FailedRun {
  /** Names it while it is one of the last. */
  readonly id: string
  readonly exitStatus: number
  /** It may have read input that cannot be given again. */
  readonly hadInput: boolean
  readonly directory: string
  /** The command line of exec, as it was written, but for the values of `--env`. */
  readonly words: readonly string[]
}

/** Longer command lines are not kept. */
const BYTES_MAX = 128 << 10
const ID = /^[0-9a-f]{11}$/

const own = () => process.getuid?.() ?? -1
const directoryOf = (env: Environment): string => join(ownDirectory(env, own()), FAILED_RUNS_DIRECTORY)

/** A value belongs to the caller, who has it when the run is made again. */
function withoutValues({ words, commandAt }: Pick<Failure, 'words' | 'commandAt'>): readonly string[] {
  const name = (text: string): string => text.split('=')[0] ?? ''
  return words.map((word, at) => {
    if (commandAt.some(([from, to]) => at >= from && at < to)) return word
    if (word.startsWith('--env=')) return `--env=${name(word.slice('--env='.length))}`
    return words[at - 1] === '--env' ? name(word) : word
  })
}

export interface Failure {
  readonly env: Environment
  readonly exitStatus: number
  readonly directory: string
  readonly words: readonly string[]
  /** Where the command is among them, `[from, to)`. */
  readonly commandAt: readonly (readonly [from: number, to: number])[]
}

/** A record that cannot be written is not kept: the run is over, and has its result. */
export function keepFailedRun({ env, exitStatus, directory, words, commandAt }: Failure): void {
  const place = directoryOf(env)
  const input = isCharacterDevice() ? 'none' : 'given'
  const record = [FAILED_RUN_MAGIC, String(exitStatus), input, directory, ...withoutValues({ words, commandAt })]
  const bytes = Buffer.from(record.map((word) => `${word}\0`).join(''))
  if (bytes.length > BYTES_MAX) return
  try {
    makePrivateDirectory(place)
  } catch {
    return // Nor can there be records of live runs, which is said elsewhere.
  }
  if (writePrivateFile({ directory: place, name: idAt(now()), uid: own() }, bytes))
    dropOldest(place, FAILED_RUNS_MAX, (name) => ID.test(name))
}

/** The hosts of the last run that was refused some, next to the directory of the records. */
const REFUSED_HOSTS = 'refused-hosts'
/** The command chose these names: a shell offers only those that are words for it. */
const HOST = /^[\w*][\w.*-]*(?::\d+)?$/
const HOSTS_MAX = 100

/** For completion. What cannot be written is not kept. */
export function keepRefusedHosts(env: Environment, denials: readonly Pick<Denial, 'fix'>[]): void {
  const hosts = denials
    .flatMap(({ fix }) => /^--allow-host (\S+)$/.exec(fix)?.[1] ?? [])
    .filter((host) => HOST.test(host))
  if (hosts.length === 0) return
  const lines = [...new Set(hosts)].slice(0, HOSTS_MAX).map((host) => `${host}\n`)
  writePrivateFile({ directory: ownDirectory(env, own()), name: REFUSED_HOSTS, uid: own() }, lines.join(''))
}

export function refusedHosts(env: Environment): readonly string[] {
  const place = ownDirectory(env, own())
  if (!isOwnDirectory(place, own())) return []
  const text = readPrivateFile(join(place, REFUSED_HOSTS), { uid: own(), most: BYTES_MAX })?.toString('utf8') ?? ''
  return text.split('\n').filter((host) => HOST.test(host))
}

/** A terminal, /dev/null, or closed. */
const isCharacterDevice = (): boolean => orElse(true, () => fstatSync(0).isCharacterDevice())

/** Milliseconds since 1970. */
const idAt = (ms: number): string => Math.floor(ms).toString(16).padStart(11, '0').slice(-11)

/** Newest first; what cannot be read, or is not ours alone, is left out. */
export function failedRuns(env: Environment): readonly FailedRun[] {
  const place = directoryOf(env)
  if (!isOwnDirectory(place, own())) return []
  const names = readdirSync(place).filter((name) => ID.test(name))
  return names
    .sort()
    .reverse()
    .slice(0, FAILED_RUNS_MAX)
    .flatMap((id) => readRecord(place, id) ?? [])
}

function readRecord(place: string, id: string): FailedRun | undefined {
  const bytes = readPrivateFile(join(place, id), { uid: own(), most: BYTES_MAX })
  const [magic, exitStatus, input, directory, ...words] = bytes?.toString('utf8').split('\0') ?? []
  if (magic !== FAILED_RUN_MAGIC || directory === undefined) return undefined
  return { id, exitStatus: Number(exitStatus), hadInput: input !== 'none', directory, words: words.slice(0, -1) }
}

/**
 * @param id or the unique beginning of one; without it, the last run
 * @throws SandboxError RUN_NOT_FOUND
 */
export function findFailedRun(env: Environment, id: string | undefined): FailedRun {
  const runs = failedRuns(env)
  const [found, other] = id === undefined ? runs.slice(0, 1) : meantBy(id, runs)
  if (found !== undefined && other === undefined && isDirectory(found.directory)) return found
  const what =
    found === undefined || other !== undefined
      ? `${found === undefined ? 'no' : 'more than one'} failed run ${id === undefined ? 'is known' : `has the ID ${JSON.stringify(id)}`}.`
      : `${JSON.stringify(found.directory)}, where that run was, is not there any more.`
  throw new SandboxError('RUN_NOT_FOUND', what, {
    hint: 'llm-do why --list, or at once: llm-do exec --explain -- COMMAND',
  })
}

const isDirectory = (path: string): boolean => orElse(false, () => statSync(path).isDirectory())
