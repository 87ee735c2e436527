/** The library's promises about stdin, listeners, aborts and spawned commands, by every way to run a command. */
import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { SandboxExecutor } from '../../src/executor.ts'
import { exec, openSandbox, type Stdin, spawn } from '../../src/index.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { BUSYBOX_IMAGE, oncePerFile, startDocker } from '../support/docker.ts'
import { expectNothingLeft, newMark, takeSnapshot } from '../support/leftovers.ts'
import { describeWith } from '../support/needs.ts'
import { checkoutFor, currentUser } from '../support/users.ts'
import { alone, WAYS, type Way } from './ways.ts'

const TEXT = 'a\u{1f600}b'
const BYTES = Buffer.from(TEXT)

const SOURCES: Readonly<Record<string, () => Stdin>> = {
  text: () => TEXT,
  bytes: () => new Uint8Array(BYTES),
  'a list': () => ['a', BYTES.subarray(1)],
  'a generator': () =>
    (function* () {
      yield 'a'
      yield ''
      yield BYTES.subarray(1)
    })(),
  'an asynchronous generator': () =>
    (async function* () {
      yield 'a'
      await sleep(20)
      yield BYTES.subarray(1)
    })(),
  "a stream of node's": () => Readable.from([BYTES.subarray(0, 3), BYTES.subarray(3)]),
  'a stream of text': () =>
    Readable.from([BYTES.subarray(0, 3), BYTES.subarray(3)], { objectMode: false, encoding: 'utf8' }),
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

async function textOf(stream: Readable): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

/** What every way promises. */
function promises(using: (use: (way: Way) => Promise<void>, policy?: object) => Promise<void>): void {
  test.each(Object.entries(SOURCES))('stdin may be %s', async (_name, source) => {
    await using(async ({ exec }) => {
      expect((await exec({ command: ['cat'], stdin: source() })).stdout).toBe(TEXT)
    })
  })

  test('a file is read as a stream, whole, and closed', async () => {
    await using(async ({ exec }) => {
      const file = join(await temporaryDirectory(), 'file')
      await writeFile(file, Buffer.alloc(5 << 20, 'abc'))
      const stream = createReadStream(file)
      expect((await exec({ command: ['wc', '-c'], stdin: stream })).stdout.trim()).toBe(`${5 << 20}`)
      expect(stream.destroyed).toBe(true)
    })
  })

  test('a source is read no faster than the command reads, and let go when the command ends', async () => {
    await using(async ({ exec }) => {
      const { source, asked, isOver } = endless()
      const result = await exec({ command: ['sh', '-c', 'sleep 0.5; head -c 10 >/dev/null'], stdin: source })
      expect(result).toMatchObject({ exitCode: 0 })
      expect(asked()).toBeLessThan(MOST_PIECES)
      expect(isOver()).toBe(true)
    })
  })

  test('a source that never gives anything holds up no command that does not read it', async () => {
    await using(async ({ exec }) => {
      const stdin = new Readable({ read: () => undefined })
      expect(await exec({ command: ['echo', 'done'], stdin })).toMatchObject({ stdout: 'done\n', exitCode: 0 })
      expect(stdin.destroyed).toBe(true)
    })
  })

  test.each<[string, (failure: Error) => Stdin, unknown]>([
    [
      'a generator that throws',
      (failure) =>
        (function* () {
          yield 'x'
          throw failure
        })(),
      'mine',
    ],
    [
      'a stream that fails',
      (failure) =>
        new Readable({
          read() {
            this.destroy(failure)
          },
        }),
      'mine',
    ],
    [
      'a piece that is neither text nor bytes',
      () => [5] as unknown as Stdin,
      expect.stringMatching(/^stdin: expected/),
    ],
  ])('%s ends the run, and is what it rejects with', async (_name, source, message) => {
    const mark = newMark()
    const before = await takeSnapshot({ mark })
    await using(async ({ exec }) => {
      const run = exec({ command: ['sh', '-c', 'cat; sleep 300', mark], stdin: source(new Error('mine')) })
      await expect(run).rejects.toMatchObject({ message })
    })
    await expectNothingLeft({ before, mark })
  })

  test.each([
    [
      'throws',
      (error: Error) => {
        throw error
      },
    ],
    ['rejects', (error: Error) => Promise.reject(error)],
  ])('a listener that %s ends the run, and is what it rejects with', async (_how, fail) => {
    const mark = newMark()
    const before = await takeSnapshot({ mark })
    await using(async ({ exec }) => {
      const error = new RangeError('mine')
      const script = 'echo out >&2; sleep 300'
      const run = exec({ command: ['sh', '-c', script, mark], onStderr: () => fail(error) })
      await expect(run).rejects.toBe(error)
    })
    await expectNothingLeft({ before, mark })
  })

  test('a listener that fails with the last words of a command that has succeeded is an error all the same', async () => {
    await using(async ({ exec }) => {
      const error = new Error('mine')
      const run = exec({ command: ['echo', 'x'], onStdout: () => sleep(50).then(() => Promise.reject(error)) })
      await expect(run).rejects.toBe(error)
    })
  })

  test('a listener that takes its time gets everything, also when the command is long gone', async () => {
    await using(async ({ exec }) => {
      const state = { bytes: 0, calls: 0 }
      const result = await exec({
        command: ['head', '-c', '300000', '/dev/zero'],
        onStdout: async (chunk) => {
          state.calls += 1
          if (state.calls === 1) await sleep(2_000)
          state.bytes += chunk.length
        },
      })
      expect(result).toMatchObject({ ok: true, reason: 'exit' })
      expect(state.bytes).toBe(300_000)
    })
  })

  test('an abort ends a run whose listener never comes back, and its reason is kept', async () => {
    await using(async ({ exec }) => {
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
  })

  test("an abort's error is named in the message", async () => {
    await using(async ({ exec }) => {
      const result = await exec({ command: ['sleep', '300'], signal: AbortSignal.timeout(100) })
      expect(result).toMatchObject({
        reason: 'cancelled',
        message: expect.stringMatching(/^cancelled by TimeoutError: /),
      })
      expect(result.abortReason).toMatchObject({ name: 'TimeoutError' })
    })
  })

  test('a spawned command is talked to while it runs', async () => {
    await using(async ({ spawn }) => {
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
  })

  test('a spawned command that ends without reading is no error for the one who writes', async () => {
    await using(async ({ spawn }) => {
      const child = spawn({ command: ['true'] })
      child.stdin.write(Buffer.alloc(4 << 20))
      expect(await child.result).toMatchObject({ exitCode: 0 })
      expect(() => child.stdin.write('late')).not.toThrow()
    })
  })

  test('a spawned command that nobody reads waits, and is ended by kill with everything it started', async () => {
    const mark = newMark()
    const before = await takeSnapshot({ mark })
    await using(async ({ spawn }) => {
      const child = spawn({ command: ['sh', '-c', '(setsid sleep 300 &) ; exec cat /dev/zero', mark] })
      await once(child.stdout, 'readable')
      await sleep(300)
      expect(child.stdout.readableLength).toBeLessThan(1 << 20)
      child.kill('SIGINT')
      const result = await child.result
      expect(result).toMatchObject({ ok: false, reason: 'cancelled' })
      expect(result.abortReason).toBe('SIGINT')
    })
    await expectNothingLeft({ before, mark })
  })

  test('a spawned flood takes no more memory than its bounds', async () => {
    await using(async ({ spawn }) => {
      const child = spawn({ command: ['head', '-c', '268435456', '/dev/zero'] })
      const before = process.resourceUsage().maxRSS
      let bytes = 0
      for await (const chunk of child.stdout) bytes += (chunk as Buffer).length
      expect(await child.result).toMatchObject({ ok: true })
      expect(bytes).toBe(268_435_456)
      // KiB; what the collector of garbage has not come to is in it, a flood that is kept would be 256 MiB.
      expect(process.resourceUsage().maxRSS - before).toBeLessThan(100 << 10)
    })
  })

  test('a time limit ends a spawned command that nobody reads', async () => {
    await using(
      async ({ spawn }) => {
        const child = spawn({ command: ['cat', '/dev/zero'] })
        expect(await child.result).toMatchObject({ ok: false, reason: 'timeout' })
      },
      { resources: { timeout: '500ms' } },
    )
  })

  test('the end of a command at its memory limit is SIGKILL', async () => {
    await using(
      async ({ exec }) => {
        const result = await exec({ command: ['sh', '-c', 'x=$(head -c 400000000 /dev/zero | tr "\\0" x)'] })
        expect(result).toMatchObject({ reason: 'memory', signal: 'SIGKILL', exitCode: null })
      },
      { resources: { memory: '64m' } },
    )
  })
}

for (const [way, using] of Object.entries(WAYS))
  describeWith(['bwrap', 'userns'], `by ${way}:`, () => {
    promises(using)
  })

describeWith('docker', 'by a container:', () => {
  const docker = oncePerFile(startDocker)
  promises(async (use, policy) => {
    const { env } = await docker()
    await alone({ env: { ...process.env, ...env }, policy: { backend: 'docker', image: BUSYBOX_IMAGE } })(use, policy)
  })
})

describeWith(['bwrap', 'userns'], 'the streams of the caller', () => {
  test.each([
    ['the three of them', '', 'given'],
    ['not its stdin where another one is said', ", stdin: 'inherit'", 'inherit'],
  ])('are inherited: %s', async (_which, more, read) => {
    const library = join(checkoutFor(currentUser()), 'dist/index.js')
    const cwd = await temporaryDirectory({ mode: 0o755 })
    const program = join(cwd, 'program.mjs')
    const script = 'cat; echo err >&2'
    await writeFile(
      program,
      `import { exec } from ${JSON.stringify(library)}
      const { stdout } = await exec({ command: ['sh', '-c', ${JSON.stringify(script)}], mode: 'inherit'${more} })
      console.log(JSON.stringify(stdout))`,
    )
    const { stdout, stderr } = await execa(process.execPath, [program], { cwd, input: 'given' })
    expect({ stdout, stderr }).toEqual({ stdout: `${read}""`, stderr: 'err' })
  })
})

describeWith(['bwrap', 'userns'], 'a terminal', () => {
  test('that nobody reads holds up no time limit', async () => {
    const policy = { tty: true, resources: { timeout: '500ms' } }
    const cwd = await temporaryDirectory({ mode: 0o755 })
    expect(await spawn({ command: ['yes'], cwd, policy }).result).toMatchObject({ ok: false, reason: 'timeout' })
  })

  test('is fed and read by a spawned command, too', async () => {
    const child = spawn({
      command: ['sh', '-c', 'test -t 0 && read line && echo "got $line"'],
      cwd: await temporaryDirectory({ mode: 0o755 }),
      policy: { tty: true },
    })
    child.stdin.write('word\n')
    expect(await textOf(child.stdout)).toContain('got word')
    expect(await child.result).toMatchObject({ exitCode: 0 })
  })
})

describeWith(['bwrap', 'userns'], 'a policy of the library', () => {
  test('is refused with all that is wrong with it, each by its place in the object', async () => {
    const policy = {
      zones: [
        { name: 'a', hostPath: '.' },
        { hostPath: '.', mode: 'wr' },
      ],
      resources: { memory: '5', timeout: '5' },
      env: { set: { A: 'x' }, inherit: ['A'] },
    } as unknown as NonNullable<Parameters<typeof exec>[0]['policy']>
    const error = await exec({ command: ['true'], policy }).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'POLICY_INVALID' })
    const { problems } = error as { readonly problems: readonly string[] }
    expect(problems.map((problem) => problem.split(': ')[0]).toSorted()).toEqual([
      'policy.env.inherit',
      'policy.resources.memory',
      'policy.resources.timeout',
      'policy.zones[1].mode',
    ])
  })

  test.each([
    [{ zones: [{ name: 'a' }] }, 'POLICY_INVALID', /^policy\.zones\[0\]: expected a hostPath/],
    [{ zones: [{ hostPath: './nope' }] }, 'ZONE_INVALID', /^policy\.zones\[0\]: .*nope: it does not exist/],
    [{ network: { allow: ['a b'] } }, 'POLICY_INVALID', /^policy\.network\.allow\[0\]: expected a host/],
  ])('names the place of %o', async (policy, code, message) => {
    const run = exec({ command: ['true'], policy })
    await expect(run).rejects.toMatchObject({ code, message: expect.stringMatching(message) })
  })
})

describeWith(['bwrap', 'userns'], 'a sandbox that was closed', () => {
  test.each([0, 1])('runs nothing any more, and may be closed again, with %d kept ready', async (warm) => {
    const sandbox = await openSandbox({ warm, cwd: await temporaryDirectory({ mode: 0o755 }) })
    const running = sandbox.exec({ command: ['sh', '-c', 'sleep 0.3; echo done'] })
    await Promise.all([sandbox.close(), sandbox.close()])
    await sandbox[Symbol.asyncDispose]()
    const closed = { code: 'SANDBOX_CLOSED' }
    await expect(sandbox.exec({ command: ['true'] })).rejects.toMatchObject(closed)
    await expect(sandbox.spawn({ command: ['true'] }).result).rejects.toMatchObject(closed)
    expect(await running).toMatchObject({ stdout: 'done\n' })
  })

  test('is an executor likewise', async () => {
    const executor = new SandboxExecutor()
    await executor.close()
    await executor[Symbol.asyncDispose]()
    await expect(executor.execute('true')).rejects.toMatchObject({ code: 'SANDBOX_CLOSED' })
    await expect(executor.executeIn('true', 'bash')).rejects.toMatchObject({ code: 'SANDBOX_CLOSED' })
  })
})
