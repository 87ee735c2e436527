/** A launch file as a run has left it in the cache; one for all tests of a file. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { runCli } from '../../support/cli.ts'
import { newDirectory } from '../../support/directory.ts'

/** A plan is cached unless something changed while it was made, such as the mounts of another test. */
const ATTEMPTS = 5

async function make(): Promise<string> {
  const { path: cwd } = await newDirectory({ mode: 0o755 })
  const { path: home } = await newDirectory()
  const directory = join(home, '.cache/llm-do/launch')
  for (let left = ATTEMPTS; left > 0; left -= 1) {
    // A zone that names the directory: the plan is for this one alone, and has no slots.
    const { status, stderr } = await runCli(['--ro', cwd, '--', 'true'], {
      cwd,
      env: { HOME: home, XDG_RUNTIME_DIR: home },
    })
    expect(status, stderr.toString()).toBe(0)
    const [name] = await readdir(directory).catch((): string[] => [])
    if (name !== undefined) return join(directory, name)
  }
  throw new Error('no run has left a launch file')
}

const state: { file?: Promise<string> } = {}

export function launchFile(): Promise<string> {
  state.file ??= make()
  return state.file
}
