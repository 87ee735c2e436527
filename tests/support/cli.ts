/**
 * Runs the built command as a person would: argv in, exact bytes and exact status out.
 *
 *     const { status, stdout } = await runCli(['--', 'true'], { as: 'plain' })
 */
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execa } from 'execa'
import { onTestFinished } from 'vitest'
import type { Result } from '../../src/report/result.ts'
import { newDirectory } from './directory.ts'
import { becoming, checkoutFor, currentUser, type User } from './users.ts'

export interface CliOptions {
  /** The user that runs it; the user of this process by default. */
  readonly as?: User
  readonly program?: 'llm-do' | 'llm-do-exec'
  /** Words before all others, of a program that starts it; as the user of this process. */
  readonly through?: readonly string[]
  readonly stdin?: string | Uint8Array
  /** Added to PATH, HOME, LANG, TMPDIR and XDG_RUNTIME_DIR; nothing else of this process's environment is passed on. */
  readonly env?: Readonly<Record<string, string>>
  /** Where it starts; its HOME by default. */
  readonly cwd?: string
  /**
   * `file` (the default): one HOME for all calls of a test file by one user, so the plan of a call that was made before is cached, as it
   * is for a person. `new`: an empty one, for a test about the first call or about what a call leaves in its HOME.
   */
  readonly home?: 'file' | 'new'
  /** Ends the run with `stopSignal`. */
  readonly abort?: AbortSignal
  readonly stopSignal?: NodeJS.Signals
}

export interface CliResult {
  /** Exit status; undefined when a signal ended the runner itself. */
  readonly status: number | undefined
  readonly signal: NodeJS.Signals | undefined
  readonly stdout: Buffer
  readonly stderr: Buffer
}

/** The command's file as a user can read it. */
export const programFor = (user: User, program: 'llm-do' | 'llm-do-exec' = 'llm-do-exec'): string =>
  join(checkoutFor(user), 'bin', program)

/** Words that start the command as a user, for tests that need the process itself. */
export const cliWords = (
  argv: readonly string[],
  { as = currentUser(), program, through = [] }: Pick<CliOptions, 'as' | 'program' | 'through'> = {},
): readonly string[] => [...through, ...becoming(as), programFor(as, program), ...argv]

interface StartOptions extends Pick<CliOptions, 'as' | 'program' | 'through' | 'env'> {
  /** Also its HOME where `env` names none. */
  readonly cwd: string
}

/** Starts the command, for tests that need the process while it runs; ended with the test. */
export function startCli(argv: readonly string[], { cwd, env, ...options }: StartOptions) {
  const [file = '', ...words] = cliWords(argv, options)
  const child = execa(file, words, {
    cwd,
    env: { ...environmentOf(options.as ?? currentUser()), HOME: cwd, ...env },
    extendEnv: false,
    reject: false,
    stdin: 'ignore',
    all: true,
  })
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await child
  })
  return child
}

const homes = new Map<User, Promise<string>>()

/** Removed with the directory of the test file (own-directory.ts), in which it lies. */
function homeOf(user: User): Promise<string> {
  const home = homes.get(user) ?? newDirectory({ owner: user }).then(({ path }) => path)
  homes.set(user, home)
  return home
}

/** Never rejects for what the command did; rejects when it could not be started. */
export async function runCli(argv: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  const user = options.as ?? currentUser()
  if (options.home !== 'new') return runAt(await homeOf(user), argv, options)
  const home = await newDirectory({ owner: user })
  try {
    return await runAt(home.path, argv, options)
  } finally {
    await home.remove()
  }
}

/** The result of `exec --json`. */
export async function runForResult(words: readonly string[], options: CliOptions = {}): Promise<Result> {
  const { stdout, stderr } = await runCli(['--json', ...words], options)
  if (!stdout.toString().startsWith('{')) throw new Error(`no result: ${stdout}${stderr}`)
  return JSON.parse(stdout.toString()) as Result
}

/** Variables of a call as a user, without HOME. The runtime directory is that of the test file's user. */
export const environmentOf = (user: User) => ({
  PATH: process.env.PATH,
  LANG: 'C.UTF-8',
  TMPDIR: tmpdir(),
  ...(user === currentUser() &&
    process.env.XDG_RUNTIME_DIR !== undefined && { XDG_RUNTIME_DIR: process.env.XDG_RUNTIME_DIR }),
})

async function runAt(home: string, argv: readonly string[], options: CliOptions): Promise<CliResult> {
  const [file = '', ...words] = cliWords(argv, options)
  const result = await execa(file, words, {
    cwd: options.cwd ?? home,
    env: { ...environmentOf(options.as ?? currentUser()), HOME: home, ...options.env },
    extendEnv: false,
    encoding: 'buffer',
    stripFinalNewline: false,
    reject: false,
    ...(options.stdin === undefined ? { stdin: 'ignore' as const } : { input: options.stdin }),
    ...(options.abort === undefined ? {} : { cancelSignal: options.abort }),
    killSignal: options.stopSignal ?? 'SIGTERM',
  })
  if (result.exitCode === undefined && result.signal === undefined) throw result
  return {
    status: result.exitCode,
    signal: result.signal as NodeJS.Signals | undefined,
    stdout: Buffer.from(result.stdout),
    stderr: Buffer.from(result.stderr),
  }
}
