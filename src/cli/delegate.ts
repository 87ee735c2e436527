/**
 * A first word that is not ours belongs to the next `llm-do` on PATH (the Python package of that name may be installed
 * after us): it gets the same words and stdio, and its exit status or signal becomes ours.
 *
 * Edge: processes, the file system.
 */
import { spawn } from 'node:child_process'
import { accessSync, constants, realpathSync, statSync } from 'node:fs'
import { constants as system } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { PASSED_SIGNALS, releaseSignals } from '../os/passed-signals.ts'

const NAME = 'llm-do'
/** Canonical paths of ours that have forwarded already, so that two installations do not forward to each other endlessly. */
const PASSED_BY = 'LLM_DO_FORWARDED_BY'

const FORWARDED_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGQUIT', ...PASSED_SIGNALS] as const

/** `device:inode`, by which a link or a copy of a directory entry is known as the same file. */
function identity(path: string): string | undefined {
  try {
    const { dev, ino } = statSync(path)
    return `${dev}:${ino}`
  } catch {
    return undefined // It does not exist.
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false // Missing or not executable: PATH search goes on, as in execvp(3).
  }
}

/** Every file that is this program: the script, the commands next to it, and those that delegated to it. */
function ourselves(
  script: string,
  env: Readonly<NodeJS.ProcessEnv>,
): { readonly paths: readonly string[]; readonly isOurs: (path: string) => boolean } {
  const real = realpathSync(script)
  const root = dirname(dirname(real))
  const own = [real, join(root, 'dist', 'cli.cjs'), join(root, 'bin', NAME), join(root, 'bin', `${NAME}-exec`)]
  const paths = [...own, ...(env[PASSED_BY] ?? '').split(delimiter).filter((path) => path !== '')]
  const identities = new Set(paths.map(identity).filter((known) => known !== undefined))
  return { paths, isOurs: (path) => identities.has(identity(path) ?? '') }
}

interface Next {
  readonly file: string
  readonly env: NodeJS.ProcessEnv
}

interface Search {
  /** The caller's, which the next one gets. */
  readonly env: Readonly<NodeJS.ProcessEnv>
  /** The entries of its PATH that may be searched: nothing at or below the caller's directory, as for every program of the host. */
  readonly path: string
}

/** The next `llm-do` on PATH that is not ourselves. @param script process.argv[1] */
export function findNext(script: string, { env, path }: Search): Next | undefined {
  const { paths, isOurs } = ourselves(script, env)
  const file = path
    .split(delimiter)
    .filter((directory) => directory.startsWith('/'))
    .map((directory) => join(directory, NAME))
    .find((candidate) => isExecutable(candidate) && !isOurs(candidate))
  return file === undefined ? undefined : { file, env: { ...env, [PASSED_BY]: [...new Set(paths)].join(delimiter) } }
}

/** Ends us the way it ended: by the same signal where that is possible, so that a shell sees no difference. */
function endLike(signal: NodeJS.Signals): number {
  releaseSignals()
  process.kill(process.pid, signal)
  return 128 + system.signals[signal]
}

/**
 * Runs it to its end.
 * @returns its exit status, 126 when it cannot be executed
 */
export function forward({ file, env }: Next, words: readonly string[]): Promise<number> {
  return new Promise((resolve) => {
    // Before it is started: what has seen it at work may send us one at once.
    const pass = (signal: NodeJS.Signals) => child.kill(signal)
    for (const signal of FORWARDED_SIGNALS) process.on(signal, pass)
    const child = spawn(file, words, { stdio: 'inherit', env })
    const settle = (status: () => number) => {
      for (const signal of FORWARDED_SIGNALS) process.off(signal, pass)
      resolve(status())
    }
    child.on('error', () => settle(() => 126))
    child.on('exit', (code, signal) => settle(() => (signal === null ? (code ?? 0) : endLike(signal))))
  })
}
