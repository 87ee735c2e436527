/**
 * Why a container ended with 126 or 127: did the command exit so, or could it not be executed?
 * Edge: processes.
 *
 * Docker's init reports a failed execve(2) by the same numbers that a command may use itself. The container is still there, so
 * its files can be asked: `cp` of one file gives a tar stream whose first block says what it is.
 */
import { execa } from 'execa'
import { EXEC_FAILURES, type SetupFailure } from '../run-kit.ts'
import type { DockerInputs } from './command-environment.ts'

export interface Lookup {
  readonly docker: DockerInputs
  readonly container: string
  readonly program: string
  readonly workdir: string
  /** PATH of the command. */
  readonly path: string
}

/** Facts about a program file as seen from outside the container. */
type Found = 'executable' | 'not executable' | 'absent' | 'unknown'

/** @returns undefined when the program could be executed, or that is not known: the exit status is then the command's own */
export async function whyNotExecuted(lookup: Lookup): Promise<SetupFailure | undefined> {
  const found = await Promise.all(candidates(lookup).map((path) => findInContainer(lookup, path)))
  if (found.includes('executable') || found.includes('unknown')) return undefined
  const errno = found.includes('not executable') ? 'EACCES' : 'ENOENT'
  return { code: EXEC_FAILURES[errno].code, step: 'exec', path: lookup.program, errno, detail: '' }
}

/** Where execvp(3) looks. */
function candidates({ program, workdir, path }: Lookup): readonly string[] {
  if (program === '') return []
  if (program.startsWith('/')) return [program]
  if (program.includes('/')) return [`${workdir}/${program}`]
  return path.split(':').map((directory) => `${directory || workdir}/${program}`)
}

/** The header block of a tar stream: POSIX.1-1988 ustar, permission bits at 100, type of the entry at 156. */
const HEADER = { bytes: 512, mode: 100, modeBytes: 8, type: 156 } as const

/** docker: `Could not find the file`; podman: `could not be found`; a part of the path that is a file. */
const ABSENT = /could not find the file|could not be found|no such file|not a directory/i

async function findInContainer({ docker, container }: Lookup, path: string): Promise<Found> {
  // podman always follows links and has no option for it.
  const follow = docker.program === 'docker' ? ['--follow-link'] : []
  const { stdout, stderr } = await execa(docker.path, ['cp', ...follow, `${container}:${path}`, '-'], {
    env: docker.environment,
    extendEnv: false,
    reject: false,
    stdin: 'ignore',
    encoding: 'buffer',
    // One block is enough; the client is ended when it sends more.
    maxBuffer: HEADER.bytes,
  })
  if (stdout.length >= HEADER.bytes) return read(stdout)
  return ABSENT.test(Buffer.from(stderr).toString('utf8')) ? 'absent' : 'unknown'
}

function read(header: Uint8Array): Found {
  const text = Buffer.from(header).toString('latin1')
  const mode = Number.parseInt(text.slice(HEADER.mode, HEADER.mode + HEADER.modeBytes), 8)
  const isDirectory = text[HEADER.type] === '5'
  return !isDirectory && (mode & 0o111) !== 0 ? 'executable' : 'not executable'
}
