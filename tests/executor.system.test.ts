/** The executor face with real sandboxes; in a container: tests/backends/docker/run. */
import { chown, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { SandboxExecutor } from '../src/executor.ts'
import { temporaryDirectory } from './support/directory.ts'
import { describeWith } from './support/needs.ts'

const OWNER = 1000

async function workspace(): Promise<string> {
  const path = await temporaryDirectory({ mode: 0o755 })
  if (process.getuid?.() === 0) await chown(path, OWNER, OWNER)
  return path
}

describeWith(['bwrap', 'userns'], 'the executor in a namespace sandbox', () => {
  test('runs a line of shell with the workspace writable, its own variables and none of ours', async () => {
    vi.stubEnv('LLM_DO_TEST_SECRET', 'secret')
    const log: string[] = []
    const executor = new SandboxExecutor({ timeout: 20_000, env: { WORD: 'a b' }, log: (line) => log.push(line) })
    const directory = await workspace()
    const result = await executor.execute(
      'echo "$WORD$LLM_DO_TEST_SECRET" > made; cat made; echo err >&2; exit 3',
      directory,
    )
    vi.unstubAllEnvs()
    expect(result).toMatchObject({ success: false, stdout: 'a b\n', stderr: 'err\n', exitCode: 3, timedOut: false })
    expect(result.executionTime).toBeGreaterThan(0)
    expect(await readFile(join(directory, 'made'), 'utf8')).toBe('a b\n')
    expect(log).toEqual(['Isolation: ENABLED (namespace)'])
  })

  test('answers with a result where it cannot run', async () => {
    const log: string[] = []
    const executor = new SandboxExecutor({ memoryLimit: 'much', log: (line) => log.push(line) })
    const result = await executor.execute(['true'], await workspace())
    expect(result).toMatchObject({ success: false, error: expect.stringMatching(/^memoryLimit: expected a size/) })
    expect(log).toEqual(['Isolation: REFUSED (nothing was run)'])
  })
})
