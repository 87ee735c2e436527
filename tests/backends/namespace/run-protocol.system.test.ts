/** Captured runs, cold and warm: what a command may do with its streams, and what they cost the process that captures them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { exec } from '../../../src/index.ts'
import { openSandbox, type SandboxCommand } from '../../../src/pool/sandbox.ts'
import type { Result } from '../../../src/report/result.ts'
import { until } from '../../pool/pool.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { describeWith } from '../../support/needs.ts'

type Run = (command: Omit<SandboxCommand, 'env'>) => Promise<Result>

/** Ends a hang: on a busy machine the flood takes longer than the half minute of the default. */
const policy = { resources: { timeout: '3m' } } as const

/** What others mount on this machine meanwhile takes a ready sandbox away. */
const ATTEMPTS = 5

const WAYS: Readonly<Record<string, (use: (run: Run) => Promise<void>) => Promise<void>>> = {
  'exec()': (use) => use((command) => exec({ ...command, policy, mode: 'capture' })),
  'a warm sandbox': async (use) => {
    for (let left = ATTEMPTS; ; left -= 1) {
      await using sandbox = await openSandbox({ policy, warm: 1, cwd: await temporaryDirectory({ mode: 0o755 }) })
      await use(async (command) => {
        await until(async () => (sandbox.ready() > 0 ? true : undefined), 'a sandbox')
        return sandbox.exec(command)
      })
      if (sandbox.served().warm > 0) return
      if (left === 0) throw new Error('no run was a warm one')
    }
  },
}

describeWith(['bwrap', 'userns'], 'a captured run', () => {
  for (const [way, using] of Object.entries(WAYS)) {
    test(`may open its streams again by name, by ${way}`, async () => {
      await using(async (run) => {
        const script = 'echo out > /dev/stdout; echo err > /dev/stderr; cat /dev/stdin'
        const { stdout, stderr } = await run({ command: ['sh', '-c', script], stdin: Buffer.from('in\n') })
        expect({ stdout, stderr }).toEqual({ stdout: 'out\nin\n', stderr: 'err\n' })
      })
    })

    test(`takes no more memory for a flood than for its bound, by ${way}`, async () => {
      await using(async (run) => {
        const before = process.resourceUsage().maxRSS
        // The most there ever was, in KiB, and with what the test runner takes meanwhile.
        const { exitCode, truncated } = await run({ command: ['head', '-c', '134217728', '/dev/zero'] })
        expect(exitCode).toBe(0)
        expect(truncated.stdout).toBeGreaterThan(120 << 20)
        expect(process.resourceUsage().maxRSS - before).toBeLessThan(20 << 10)
      })
    })

    test(`waits for a listener that returns a promise, by ${way}`, async () => {
      await using(async (run) => {
        const state = { busy: 0, most: 0, bytes: 0 }
        const { exitCode } = await run({
          command: ['head', '-c', '1000000', '/dev/zero'],
          onStdout: async (chunk) => {
            state.busy += 1
            state.most = Math.max(state.most, state.busy)
            state.bytes += chunk.length
            await sleep(2)
            state.busy -= 1
          },
        })
        expect({ exitCode, ...state }).toEqual({ exitCode: 0, busy: 0, most: 1, bytes: 1_000_000 })
      })
    })

    test(`ends when its input does, however much of it the command reads, by ${way}`, async () => {
      await using(async (run) => {
        const stdin = Buffer.alloc(3 << 20, 'x')
        expect(await run({ command: ['wc', '-c'], stdin })).toMatchObject({ stdout: `${stdin.length}\n` })
        expect(await run({ command: ['head', '-c', '3'], stdin })).toMatchObject({ stdout: 'xxx', exitCode: 0 })
        expect(await run({ command: ['true'], stdin })).toMatchObject({ exitCode: 0 })
      })
    })

    test(`is ended by an abort, and by one that came before, by ${way}`, async () => {
      await using(async (run) => {
        const abort = new AbortController()
        const command = ['sh', '-c', 'echo; exec sleep 60']
        const ended = await run({ command, signal: abort.signal, onStdout: () => abort.abort('SIGTERM') })
        expect(ended).toMatchObject({ reason: 'cancelled', stdout: '\n' })
        expect(await run({ command: ['sleep', '60'], signal: AbortSignal.abort('SIGINT') })).toMatchObject({
          reason: 'cancelled',
        })
      })
    })
  }
})
