/** The executor face with real sandboxes. */
import { chown, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { SandboxExecutor } from '../src/executor.ts'
import { temporaryDirectory } from './support/directory.ts'
import { BUSYBOX_IMAGE, startDocker, type TestDocker } from './support/docker.ts'
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

describeWith('docker', 'the executor in a container', () => {
  const state: { docker?: TestDocker } = {}
  beforeAll(async () => {
    state.docker = await startDocker()
    for (const [name, value] of Object.entries(state.docker.env)) vi.stubEnv(name, value)
  })
  afterAll(async () => {
    vi.unstubAllEnvs()
    await state.docker?.stop()
  })

  test('runs with the programs of an image and leaves none of it', async () => {
    const log: string[] = []
    const executor = new SandboxExecutor({ memoryLimit: '256m', cpuLimit: '1.5', log: (line) => log.push(line) })
    const directory = await workspace()
    const options = { image: BUSYBOX_IMAGE, workspaceDir: directory }
    const result = await executor.executeIn('echo made > made; pwd; exit 0', 'bash', options)
    expect(result).toMatchObject({ success: true, stdout: '/workspace\n', exitCode: 0, timedOut: false })
    expect(await readFile(join(directory, 'made'), 'utf8')).toBe('made\n')
    expect(log).toEqual(['Docker isolation: ENABLED (Secure)'])
    expect(await state.docker?.client('ps', '--all', '--quiet')).toBe('')
  })
})
