/** Warnings that are known from the plan are read before the command does anything, and only once. */
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runCli } from '../support/cli.ts'
import { newDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { currentUser } from '../support/users.ts'

const count = (text: string, part: string): number => text.split(part).length - 1

test.each([
  ['that succeeds', 'echo began >&2'],
  ['whose end is told in words', 'echo began >&2; kill -KILL $$'],
])('without walls a command %s is begun after all warnings', async (_, script) => {
  const env = { LLM_DO_ALLOW_UNSANDBOXED: '1' }
  const { stderr } = await runCli(['--backend', 'process', '-c', script], { env })
  const [before = '', after = ''] = stderr.toString().split('began\n')
  for (const warning of ['no isolation: ', 'Execution context: ', 'Isolation: DISABLED: ']) {
    expect(count(before, `llm-do: warning: ${warning}`)).toBe(1)
  }
  expect(after).not.toContain('warning')
})

describeWith('userns', 'a socket that a zone leaves open', () => {
  const withSocket = async (act: (directory: string) => Promise<void>) => {
    const { path, remove } = await newDirectory({ owner: currentUser(), mode: 0o755 })
    const server = createServer().listen(join(path, 'service'))
    try {
      await act(path)
    } finally {
      server.close()
      await remove()
    }
  }

  test('is warned of before the command starts, each time', async () => {
    await withSocket(async (cwd) => {
      for (const script of ['echo began >&2', 'echo began >&2; exit 1', 'echo began >&2; kill -KILL $$']) {
        const { stderr } = await runCli(['-c', script], { cwd })
        const [before = '', after = ''] = stderr.toString().split('began\n')
        expect([count(before, 'warning: '), count(after, 'warning: ')]).toEqual([1, 0])
        expect(before).toContain('service')
      }
    })
  })

  test('is warned of in JSON alone, where JSON was asked for', async () => {
    await withSocket(async (cwd) => {
      const { stdout, stderr } = await runCli(['--json', '-c', 'echo began >&2'], { cwd })
      expect(stderr.toString()).toBe('')
      expect(JSON.parse(stdout.toString())).toMatchObject({ warnings: [expect.stringContaining('service')] })
    })
  })
})
