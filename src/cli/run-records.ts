/**
 * The records of this user's live runs, by the native program that reads them.
 *
 * Edge: processes.
 */

import { SandboxError } from '../error.ts'
import { runsDirectory } from '../host/own-directory.ts'
import { hostCall } from '../os/native-programs.ts'
import { type ProgramCall, type ProgramEnd, runProgram, runProgramSync } from '../os/run-program.ts'
import { neutralise } from '../report/text.ts'
import { makeOwnDirectory } from '../run/caller.ts'
import { runIdOf } from '../run/named-sandboxes.ts'
import { meantBy } from '../text/shortened-id.ts'
import type { Environment } from './call.ts'

export interface RunsReply {
  readonly stdout: string
  /** 0, or 1 for "no such run". */
  readonly status: number
}

/** A record has its command line, of which the kernel takes two megabytes at most. */
const MOST_OUTPUT = 2 ** 28

function runsProgram(env: Environment, words: readonly string[]): ProgramCall {
  makeOwnDirectory(env)
  const [action = '', ...rest] = words
  const call = hostCall('runs', [action, runsDirectory(env, process.getuid?.() ?? 0), ...rest])
  return { ...call, env: {}, mostOutput: MOST_OUTPUT }
}

function replyOf({ file, argv: [action] }: ProgramCall, { status, stdout, why }: ProgramEnd): RunsReply {
  if (status === 'ENOENT') throw new SandboxError('HELPER_MISSING', `${file}: no such file.`, { hint: 'make native' })
  if (status === 0 || status === 1) return { stdout, status }
  throw new SandboxError('BACKEND_FAILED', `${action}: ${why}`, {
    hint: 'ls -ld the directory named above; it must be yours alone',
  })
}

/** Runs that program. @throws SandboxError with its own words when it cannot do its work */
export async function runRunsProgram(
  env: Environment,
  action: 'kill' | 'prune',
  ...words: readonly string[]
): Promise<RunsReply> {
  const call = runsProgram(env, [action, ...words])
  return replyOf(call, await runProgram(call))
}

/** A live run, as `runs list` says it. */
export interface RunLine {
  readonly id: string
  readonly pid: number
  /** Seconds since 1970. */
  readonly started: number
  /** The owner; root sees the runs of all users. */
  readonly uid: number
  /** The caller's working directory; empty where the caller gave none. */
  readonly directory: string
  readonly profile: string
  readonly command: readonly string[]
}

/** @throws SandboxError as above */
export function listRuns(env: Environment): readonly RunLine[] {
  const call = runsProgram(env, ['list'])
  const { stdout } = replyOf(call, runProgramSync(call))
  return stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as RunLine]))
}

/** Another user can write anything into their record, so no action relies on it. */
export const isOwn = ({ uid }: RunLine): boolean => uid === process.getuid?.()

const notFound = (why: string): SandboxError => new SandboxError('RUN_NOT_FOUND', `${why}.`, { hint: 'llm-do ps' })

export const notAlive = (word: string): SandboxError => notFound(`no run ${neutralise(word)} is alive`)

/**
 * The live run of this user that a word names: the name of a sandbox, an ID, or its unique beginning.
 * @throws SandboxError RUN_NOT_FOUND
 */
export function ownRun(env: Environment, word: string, runs: readonly RunLine[] = listRuns(env)): RunLine {
  const all = meantBy(runIdOf(env, word), runs)
  const [run, ...others] = all.filter(isOwn)
  if (run !== undefined && others.length === 0) return run
  const shown = neutralise(word)
  if (run !== undefined)
    throw notFound(`${shown} begins several runs: ${[run, ...others].map(({ id }) => id).join(', ')}`)
  throw all.length > 0 ? notFound(`run ${shown} is another user's, who alone can end or change it`) : notAlive(word)
}
