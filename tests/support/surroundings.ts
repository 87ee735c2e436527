/**
 * Settings of the caller of the tests must not reach them: our options, the repository that a git hook is about,
 * colours that node and vitest print in, and the mask under which fixtures for other users are made. Separate tests try the
 * program with such settings.
 */
import { useOwnDirectory } from './own-directory.ts'

interface Surroundings {
  readonly directory: string
  readonly environment: NodeJS.ProcessEnv
  readonly kill: typeof process.kill
}

const FIRST = Symbol.for('llm-do-exec: surroundings of the first test file')
const store = globalThis as { [FIRST]?: Surroundings }
store[FIRST] ??= { directory: process.cwd(), environment: { ...process.env }, kill: process.kill }
const first = store[FIRST]

/** Files share a process, and no hook runs behind a file whose tests are all skipped: so each file begins as the first one did. */
function beginAsFirst(): void {
  process.chdir(first.directory)
  for (const name of Object.keys(process.env)) if (!(name in first.environment)) delete process.env[name]
  Object.assign(process.env, first.environment)
  // A pid that a test does not know must not be everybody's in the process group of the tests, which is CI's.
  process.kill = (pid, signal) => {
    if (signal !== 0 && (pid === 0 || Math.abs(pid) === 1)) throw new RangeError(`kill(${pid}): no process of a test`)
    return first.kill.call(process, pid, signal)
  }
}

beginAsFirst()
process.umask(0o022)
for (const name of Object.keys(process.env))
  if (/^(?:GIT_|LLM_DO_EXEC_|(?:FORCE|NO)_COLOR$)/.test(name)) delete process.env[name]
useOwnDirectory()
