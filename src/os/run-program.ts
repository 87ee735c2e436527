/**
 * Runs a short program of the host and waits for all of its output. Uses node's own means and not execa: these calls are part of a
 * first run, in which loading a library takes longer than the program.
 * Edge: processes.
 */
import { execFile, spawnSync } from 'node:child_process'

export interface ProgramCall {
  readonly file: string
  readonly argv: readonly string[]
  /** Complete; default: the system's directories as PATH, and nothing else. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Default: the root, which holds no file that a program would read on its own. */
  readonly cwd?: string
  /** Milliseconds; a program that takes longer is killed. Default: it has all the time it needs. */
  readonly patienceMs?: number
  /** Its stdin; default: empty. */
  readonly input?: Uint8Array
  /** Bytes of each stream, above which it is killed. */
  readonly mostOutput?: number
}

export interface ProgramEnd {
  /** It exited in time, with status 0. */
  readonly ok: boolean
  /** Its exit status, or the code of the error that prevented its start, such as ENOENT; undefined when it was killed. */
  readonly status: number | string | undefined
  readonly stdout: string
  readonly stderr: string
  /** The error, one line: the first line of its stderr, else how it ended. Empty without one. */
  readonly why: string
  /** It was not killed for being slow. */
  readonly inTime: boolean
}

/** Where programs of the system are looked for: never by the caller's PATH, which may name directories that a sandbox can write to. */
export const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin'

const PLAIN_ENVIRONMENT = { PATH: SYSTEM_PATH }

/** Few programs that are run here print nearly as much. */
const MOST_OUTPUT = 64 * 1024

/** Never throws: a program that cannot be started has `ok: false`, too. */
export function runProgram({
  file,
  argv,
  env = PLAIN_ENVIRONMENT,
  cwd = '/',
  patienceMs = 0,
  mostOutput = MOST_OUTPUT,
  input,
}: ProgramCall): Promise<ProgramEnd> {
  const options = { env, cwd, timeout: patienceMs, killSignal: 'SIGKILL', maxBuffer: mostOutput } as const
  return new Promise((resolve) => {
    const child = execFile(file, argv, options, (error, stdout, stderr) => {
      const firstLine = stderr.trim().split('\n')[0] ?? ''
      const why = error === null ? '' : firstLine || endText(error, patienceMs)
      const status = error === null ? 0 : (error.code ?? undefined)
      resolve({ ok: error === null, status, stdout, stderr, why, inTime: error?.killed !== true })
    })
    // A program that ended before it has read all of it says why by its end.
    child.stdin?.on('error', () => undefined)
    child.stdin?.end(input)
  })
}

/**
 * The same, synchronously: for verbs that have nothing else to do until it ends. Node then makes no streams, which saves 4 of 37 ms of a
 * script that does nothing else.
 */
export function runProgramSync({
  file,
  argv,
  env = PLAIN_ENVIRONMENT,
  cwd = '/',
  mostOutput = MOST_OUTPUT,
}: Omit<ProgramCall, 'patienceMs'>): ProgramEnd {
  const { error, status, signal, stdout, stderr } = spawnSync(file, argv, {
    env,
    cwd,
    encoding: 'utf8',
    killSignal: 'SIGKILL',
    maxBuffer: mostOutput,
  })
  const ok = error === undefined && status === 0
  const code = error === undefined ? (status ?? undefined) : (error as NodeJS.ErrnoException).code
  const why = ok ? '' : stderr?.trim().split('\n')[0] || endText({ code, signal }, 0)
  // A program that could not be started has no output, not even an empty one.
  return { ok, status: code, stdout: stdout ?? '', stderr: stderr ?? '', why, inTime: true }
}

function endText(
  { code, killed, signal }: { code?: unknown; killed?: boolean; signal?: unknown },
  patienceMs: number,
): string {
  if (killed === true) return `no answer within ${patienceMs / 1000} s`
  if (typeof code === 'number') return `status ${code}`
  return String(code ?? signal ?? 'no answer')
}
