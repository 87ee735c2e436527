/** The library's promises about stdin, listeners, aborts and spawned commands, for a way to run a command. */
import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Stdin } from '../../src/index.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { expectNothingLeft, newMark, takeSnapshot } from '../support/leftovers.ts'
import type { Policy, Way, WithWay } from './ways.ts'

const TEXT = 'a\u{1f600}b'
const BYTES = Buffer.from(TEXT)

const SOURCES: Readonly<Record<string, () => Stdin>> = {
  text: () => TEXT,
  bytes: () => new Uint8Array(BYTES),
  'a list': () => ['a', BYTES.subarray(1)],
  'an asynchronous generator': () =>
    (async function* () {
      yield 'a'
      await sleep(20)
      yield ''
      yield BYTES.subarray(1)
    })(),
  "a stream of node's": () => Readable.from([BYTES.subarray(0, 3), BYTES.subarray(3)]),
  'a stream of the web': () => new Blob([TEXT]).stream(),
}

/** Most pieces of 64 KiB that are on their way: in the source's buffer, in node's, in the socket, in the launcher and in the pipe. */
const MOST_PIECES = 32

/** @returns how many pieces were asked for, and whether it was told that no more are */
function endless(): { readonly source: Stdin; readonly asked: () => number; readonly isOver: () => boolean } {
  const state = { asked: 0, isOver: false }
  const source = (function* () {
    try {
      for (;;) {
        state.asked += 1
        yield Buffer.alloc(65_536, 'x')
      }
    } finally {
      state.isOver = true
    }
  })()
  return { source, asked: () => state.asked, isOver: () => state.isOver }
}

/** Ends a hang: on a busy machine a flood takes longer than the half minute of the default. */
const UNHURRIED = { resources: { timeout: '3m' } } as const

/** Every way keeps these. */
export function promises(using: WithWay): void {
  const promise = (title: string, keep: (way: Way) => Promise<void>, policy?: Policy) =>
    test(title, () => using(keep, policy))

  /** @param keep gives the mark to its command */
  const promiseToLeaveNothing = (title: string, keep: (way: Way, mark: string) => Promise<void>) =>
    test(title, async () => {
      const mark = newMark()
      const before = await takeSnapshot({ mark })
      await using((way) => keep(way, mark), {}) // A policy: what keeps a sandbox ready is gone, too.
      await expectNothingLeft({ before, mark })
    })

  promise('stdin may be text, bytes, or any source of them', async ({ exec }) => {
    for (const [name, source] of Object.entries(SOURCES))
      expect((await exec({ command: ['cat'], stdin: source() })).stdout, name).toBe(TEXT)
  })

  promise(
    'a flood takes no more memory than its bound',
    async ({ exec }) => {
      // The most there ever was, in KiB, and with what the test runner takes meanwhile.
      const before = process.resourceUsage().maxRSS
      const { exitCode, truncated } = await exec({ command: ['head', '-c', '134217728', '/dev/zero'] })
      expect(exitCode).toBe(0)
      expect(truncated.stdout).toBeGreaterThan(120 << 20)
      expect(process.resourceUsage().maxRSS - before).toBeLessThan(20 << 10)
    },
    UNHURRIED,
  )

  promise('a file is read as a stream, whole, and closed', async ({ exec }) => {
    const file = join(await temporaryDirectory(), 'file')
    await writeFile(file, Buffer.alloc(5 << 20, 'abc'))
    const stream = createReadStream(file)
    expect((await exec({ command: ['wc', '-c'], stdin: stream })).stdout.trim()).toBe(`${5 << 20}`)
    expect(stream.destroyed).toBe(true)
  })

  promise('a source is read no faster than the command reads, and let go when the command ends', async ({ exec }) => {
    const { source, asked, isOver } = endless()
    const result = await exec({ command: ['sh', '-c', 'sleep 0.5; head -c 10 >/dev/null'], stdin: source })
    expect(result).toMatchObject({ exitCode: 0 })
    expect(asked()).toBeLessThan(MOST_PIECES)
    expect(isOver()).toBe(true)
  })

  promise('a source that never gives anything holds up no command that does not read it', async ({ exec }) => {
    const stdin = new Readable({ read: () => undefined })
    expect(await exec({ command: ['echo', 'done'], stdin })).toMatchObject({ stdout: 'done\n', exitCode: 0 })
    expect(stdin.destroyed).toBe(true)
  })

  promiseToLeaveNothing(
    'a source that fails, or gives neither text nor bytes, ends the run, and is what it rejects with',
    async ({ exec }, mark) => {
      const failing = (function* () {
        yield 'x'
        throw new Error('mine')
      })()
      for (const [stdin, message] of [
        [failing, 'mine'],
        [[5] as unknown as Stdin, expect.stringMatching(/^stdin: expected/)],
      ] as const) {
        const run = exec({ command: ['sh', '-c', 'cat; sleep 300', mark], stdin })
        await expect(run).rejects.toMatchObject({ message })
      }
    },
  )

  promiseToLeaveNothing(
    'a listener that throws or rejects ends the run, and is what it rejects with',
    async ({ exec }, mark) => {
      const error = new RangeError('mine')
      const throws = () => {
        throw error
      }
      for (const onStderr of [throws, () => Promise.reject(error)]) {
        const run = exec({ command: ['sh', '-c', 'echo out >&2; sleep 300', mark], onStderr })
        await expect(run).rejects.toBe(error)
      }
    },
  )

  promise(
    'a listener that fails with the last words of a command that has succeeded is an error all the same',
    async ({ exec }) => {
      const error = new Error('mine')
      const run = exec({ command: ['echo', 'x'], onStdout: () => sleep(50).then(() => Promise.reject(error)) })
      await expect(run).rejects.toBe(error)
    },
  )

  promise('a listener that takes its time gets everything, also when the command is long gone', async ({ exec }) => {
    const state = { bytes: 0, calls: 0 }
    const result = await exec({
      command: ['head', '-c', '300000', '/dev/zero'],
      onStdout: async (chunk) => {
        state.calls += 1
        if (state.calls === 1) await sleep(500)
        state.bytes += chunk.length
      },
    })
    expect(result).toMatchObject({ ok: true, reason: 'exit' })
    expect(state.bytes).toBe(300_000)
  })

  promise('an abort ends a run whose listener never comes back, and its reason is kept', async ({ exec }) => {
    const abort = new AbortController()
    const reason = { why: 'enough', circular: {} as unknown }
    reason.circular = reason
    const onStdout = () => {
      setTimeout(() => abort.abort(reason), 100)
      return new Promise(() => undefined)
    }
    const result = await exec({ command: ['sh', '-c', 'yes; sleep 300'], signal: abort.signal, onStdout })
    expect(result).toMatchObject({ ok: false, reason: 'cancelled', exitCode: null })
    expect(result.abortReason).toBe(reason)
    expect(JSON.parse(JSON.stringify(result))).not.toHaveProperty('abortReason')
  })

  promise("an abort's error is named in the message, and one that came before the run counts", async ({ exec }) => {
    const early = await exec({ command: ['sleep', '300'], signal: AbortSignal.abort('SIGINT') })
    expect(early).toMatchObject({ reason: 'cancelled', message: 'cancelled by SIGINT' })
    const result = await exec({ command: ['sleep', '300'], signal: AbortSignal.timeout(100) })
    expect(result).toMatchObject({
      reason: 'cancelled',
      message: expect.stringMatching(/^cancelled by TimeoutError: /),
    })
    expect(result.abortReason).toMatchObject({ name: 'TimeoutError' })
  })

  promise('a spawned command is talked to while it runs', async ({ spawn }) => {
    const child = spawn({
      command: ['sh', '-c', 'while read line; do echo "got $line"; echo "$line" >&2; done; exit 3'],
    })
    for (const word of ['one', 'two']) {
      child.stdin.write(`${word}\n`)
      const [answer, echoed] = await Promise.all([once(child.stdout, 'data'), once(child.stderr, 'data')])
      expect([String(answer), String(echoed)]).toEqual([`got ${word}\n`, `${word}\n`])
    }
    child.stdin.end()
    expect(await child.result).toMatchObject({ exitCode: 3, reason: 'exit', stdout: 'got one\ngot two\n' })
  })

  promise('a spawned command that ends without reading is no error for the one who writes', async ({ spawn }) => {
    const child = spawn({ command: ['true'] })
    child.stdin.write(Buffer.alloc(4 << 20))
    expect(await child.result).toMatchObject({ exitCode: 0 })
    expect(() => child.stdin.write('late')).not.toThrow()
  })

  promiseToLeaveNothing(
    'a spawned command that nobody reads waits, and is ended by kill with everything it started',
    async ({ spawn }, mark) => {
      const child = spawn({ command: ['sh', '-c', '(setsid sleep 300 &) ; exec cat /dev/zero', mark] })
      await once(child.stdout, 'readable')
      await sleep(300)
      expect(child.stdout.readableLength).toBeLessThan(1 << 20)
      child.kill('SIGINT')
      const result = await child.result
      expect(result).toMatchObject({ ok: false, reason: 'cancelled' })
      expect(result.abortReason).toBe('SIGINT')
    },
  )

  promise(
    'a time limit ends a spawned command that nobody reads',
    async ({ spawn }) => {
      const child = spawn({ command: ['cat', '/dev/zero'] })
      expect(await child.result).toMatchObject({ ok: false, reason: 'timeout' })
    },
    { resources: { timeout: '500ms' } },
  )
}

/** And what every way but a process of the host, whose streams are node's sockets. */
export function sandboxPromises(using: WithWay): void {
  promises(using)

  test('the streams of a command may be opened again by their names', () =>
    using(async ({ exec }) => {
      const script = 'echo out > /dev/stdout; echo err > /dev/stderr; cat /dev/stdin'
      const { stdout, stderr } = await exec({ command: ['sh', '-c', script], stdin: 'in\n' })
      expect({ stdout, stderr }).toEqual({ stdout: 'out\nin\n', stderr: 'err\n' })
    }))
}
