/**
 * What the caller of the tests has set must not reach them: options of ours, the repository that a git hook is about,
 * colours that node and vitest print in, and the mask under which fixtures for other users are made. What the program does with
 * such things is tested with its own words.
 */
import { useOwnDirectory } from './own-directory.ts'

process.umask(0o022)
for (const name of Object.keys(process.env))
  if (/^(?:GIT_|LLM_DO_EXEC_|(?:FORCE|NO)_COLOR$)/.test(name)) delete process.env[name]
useOwnDirectory()
