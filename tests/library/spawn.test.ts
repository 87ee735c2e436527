/** The handle of a spawned command, over a run that does what the test says. */
import { once } from 'node:events'
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { SandboxError } from '../../src/error.ts'
import { OptionsError } from '../../src/library/check-options.ts'
import { type SpawnedCommand, type SpawnStreams, spawnBy } from '../../src/library/spawn.ts'
import type { ExecResult } from '../../src/run/layer-handle.ts'

const RESULT = { ok: true } as ExecResult

const whenAborted = ({ signal }: SpawnStreams): Promise<void> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve()))

describe('a spawned command', () => {
  test('that is refused ends its streams, and is no unhandled rejection', async () => {
    const unhandled: unknown[] = []
    const note = (reason: unknown) => void unhandled.push(reason)
    process.on('unhandledRejection', note)
    onTestFinished(() => void process.off('unhandledRejection', note))
    const refusal = new SandboxError('NO_BACKEND', 'none')
    const child = spawnBy(() => Promise.reject(refusal))
    child.stdin.write('nobody reads this')
    child.stdout.resume()
    await once(child.stdout, 'end')
    await turn()
    expect(unhandled).toEqual([])
    await expect(child.result).rejects.toBe(refusal)
    expect(child.stdin.destroyed).toBe(true)
  })

  test('waits for a reader when a pipe would be full', async () => {
    const waiting: unknown[] = []
    const child = spawnBy(async ({ onStdout }) => {
      waiting.push(onStdout(Buffer.alloc(8)))
      const full = onStdout(Buffer.alloc(1 << 20))
      waiting.push(full)
      await full
      return RESULT
    })
    expect(waiting).toEqual([undefined, expect.any(Promise)])
    child.stdout.resume()
    expect(await child.result).toBe(RESULT)
  })

  test('whose reader has gone goes on', async () => {
    const child = spawnBy(async ({ onStdout }) => {
      await onStdout(Buffer.alloc(1 << 20))
      expect(onStdout(Buffer.alloc(1 << 20))).toBeUndefined()
      return RESULT
    })
    child.stdout.destroy()
    expect(await child.result).toBe(RESULT)
  })

  test.each([undefined, 'SIGINT'] as const)('is told which signal ends it: %s', async (signal) => {
    const reasons: unknown[] = []
    const child = spawnBy(async (streams) => {
      await whenAborted(streams)
      reasons.push(streams.signal.reason)
      return RESULT
    })
    child.kill(signal)
    child.kill('SIGHUP')
    await child.result
    expect(reasons).toEqual([signal ?? 'SIGTERM'])
  })

  test('finds the end of a stdin that was destroyed, and the error of one that has one', async () => {
    const pieces = async (destroy: (child: SpawnedCommand) => void) => {
      const child = spawnBy(async ({ stdin }) => {
        const first = await stdin.piece(0)
        return { ...RESULT, stdout: `${first.length}` }
      })
      destroy(child)
      return (await child.result).stdout
    }
    expect(await pieces(({ stdin }) => stdin.destroy())).toBe('0')
    await expect(pieces(({ stdin }) => stdin.destroy(new Error('mine')))).rejects.toThrow('mine')
  })

  test('is given no other signal', async () => {
    const child = spawnBy(async () => RESULT)
    expect(() => child.kill('SIGKILL' as 'SIGTERM')).toThrow(OptionsError)
    expect(await child.result).toBe(RESULT)
  })

  test.each(['before', 'later'])("is ended by its caller's signal, with the reason: aborted %s", async (when) => {
    const abort = new AbortController()
    const reason = { mine: true }
    if (when === 'before') abort.abort(reason)
    const child = spawnBy(async (streams) => {
      if (!streams.signal.aborted) await whenAborted(streams)
      expect(streams.signal.reason).toBe(reason)
      return RESULT
    }, abort.signal)
    abort.abort(reason)
    expect(await child.result).toBe(RESULT)
  })

  test('ends with the block that uses it', async () => {
    let isOver = false
    {
      await using _child = spawnBy(async (streams) => {
        await whenAborted(streams)
        isOver = true
        return RESULT
      })
    }
    expect(isOver).toBe(true)
  })
})
