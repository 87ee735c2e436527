/** A child that runs until it is stopped. */
import { closeSync, existsSync, readFileSync, watch, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { openUnlinked, runChild } from '../../src/backends/child-process.ts'
import type { Launch } from '../../src/backends/launch.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { until } from '../support/processes.ts'

const launch = (script: string): Launch => ({
  file: '/bin/sh',
  argv: ['-c', script],
  env: { PATH: process.env.PATH ?? '' },
  cwd: '/',
  descriptors: [],
})

const STDIO = { mode: 'capture', stdin: 'ignore', outputCap: null } as const

describe('a child', () => {
  test('that is still there after it was asked to end is killed', async () => {
    const ready = join(await temporaryDirectory(), 'ready')
    const end = await runChild({
      launch: launch(`trap "" TERM; echo >${ready}; exec sleep 60`),
      stdio: STDIO,
      deadlineMs: 100,
      stop: async (child) => {
        await until('the trap', () => existsSync(ready) || undefined)
        child.kill('SIGTERM')
      },
    })
    expect(end).toMatchObject({ cause: 'deadline', exitCode: null, signal: 'SIGKILL' })
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

test.runIf(process.platform === 'linux')(
  'a file without a name never had one, so a killed process leaves none',
  async () => {
    const directory = await temporaryDirectory()
    vi.stubEnv('TMPDIR', directory)
    onTestFinished(() => void vi.unstubAllEnvs())
    const seen: (string | null)[] = []
    const watcher = watch(directory, (_, name) => void seen.push(name))
    onTestFinished(() => watcher.close())
    const fd = openUnlinked(Buffer.from('content'))
    expect(readFileSync(`/proc/self/fd/${fd}`, 'utf8')).toBe('content')
    closeSync(fd)
    // The control comes last: what is seen of it is all there was.
    writeFileSync(join(directory, 'named'), '')
    await until('the control', () => seen.includes('named') || undefined)
    // The kernel calls a nameless file by its inode there.
    expect(new Set(seen.filter((name) => !/^#\d+$/.test(name ?? '')))).toEqual(new Set(['named']))
  },
)
