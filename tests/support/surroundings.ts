/**
 * Settings of the caller of the tests must not reach them: our options, the repository that a git hook is about,
 * colours that node and vitest print in, and the mask under which fixtures for other users are made. Separate tests try the
 * program with such settings.
 */
import { afterAll } from 'vitest'
import { useOwnDirectory } from './own-directory.ts'

const { kill } = process

/** A pid that a test does not know must not be everybody's in the process group of the tests, which is CI's. */
process.kill = (pid, signal) => {
  if (signal !== 0 && (pid === 0 || Math.abs(pid) === 1)) throw new RangeError(`kill(${pid}): no process of a test`)
  return kill.call(process, pid, signal)
}

/** Files share a process: the next one finds it as this one did. */
function giveBack(): void {
  const directory = process.cwd()
  const environment = { ...process.env }
  afterAll(() => {
    process.kill = kill
    process.chdir(directory)
    for (const name of Object.keys(process.env)) if (!(name in environment)) delete process.env[name]
    Object.assign(process.env, environment)
  })
}

giveBack()
process.umask(0o022)
for (const name of Object.keys(process.env))
  if (/^(?:GIT_|LLM_DO_EXEC_|(?:FORCE|NO)_COLOR$)/.test(name)) delete process.env[name]
useOwnDirectory()
