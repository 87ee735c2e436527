/** A child that somebody has to end. */
import { describe, expect, test } from 'vitest'
import type { Launch } from '../../src/backend/launch.ts'
import { runChild } from '../../src/supervisor/child.ts'

const launch = (script: string): Launch => ({
  file: '/bin/sh',
  argv: ['-c', script],
  env: { PATH: process.env.PATH ?? '' },
  cwd: '/',
  descriptors: [],
  canFrame: false,
})

const STDIO = { mode: 'capture', stdin: 'ignore', outputCap: null } as const

describe('a child', () => {
  test('that is still there after it was asked to end is killed', async () => {
    const end = await runChild({
      launch: launch('trap "" TERM; echo ready; exec sleep 60'),
      stdio: STDIO,
      deadlineMs: 300,
      stop: async (child) => void child.kill('SIGTERM'),
    })
    expect(end).toMatchObject({ cause: 'deadline', exitCode: null, signal: 'SIGKILL' })
    // 300 ms and the second of grace; a child that nobody kills takes a minute.
    expect(end.elapsedMs).toBeLessThan(10_000)
  })

  test('that cannot be asked to end is killed', async () => {
    const stop = () => Promise.reject(new Error('nobody there'))
    const end = await runChild({ launch: launch('exec sleep 60'), stdio: STDIO, deadlineMs: 100, stop })
    expect(end).toMatchObject({ cause: 'deadline', signal: 'SIGKILL' })
  })

  test('that ends when it is asked to is not killed', async () => {
    const end = await runChild({
      launch: launch('exec sleep 60'),
      stdio: STDIO,
      deadlineMs: 100,
      stop: async (child) => void child.kill('SIGTERM'),
    })
    expect(end).toMatchObject({ cause: 'deadline', signal: 'SIGTERM' })
  })
})
