/** openSandbox: the contract in warm sandboxes, hundreds of runs, and kills at any moment. */
import { readdirSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { observeForDoctor } from '../../src/doctor/checks.ts'
import { CONTRACT } from '../../src/doctor/rows/index.ts'
import { tryRow } from '../../src/doctor/self-test.ts'
import { openSandbox, type Sandbox } from '../../src/pool/sandbox.ts'
import { expectedKind } from '../escape/rows.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { warmRunner } from './contract.ts'
import { until } from './pool.ts'

/** How many kills; what each run leaves is counted after five times as many runs. More by LLM_DO_TEST_SOAK, and by `make soak`. */
const SOAK = Number(process.env.LLM_DO_TEST_SOAK ?? 60)
const GROWTH_RUNS = SOAK * 5

/** Longer than a plan is wary of files that have just been written. */
const SETTLED_MS = 80

async function open(warm = 2): Promise<Sandbox> {
  const sandbox = await openSandbox({ cwd: await temporaryDirectory({ mode: 0o755 }), warm })
  await whenReady(sandbox, warm)
  return sandbox
}

const whenReady = (sandbox: Sandbox, count = 1) =>
  until(async () => (sandbox.ready() >= count ? true : undefined), `${count} sandboxes ready`)

const openDescriptors = (): number => readdirSync('/proc/self/fd').length

describeWith(['bwrap', 'userns'], 'an open sandbox', () => {
  test('runs a command, with stdin, both streams and its exit code', async () => {
    await using sandbox = await open()
    const result = await sandbox.exec({
      command: ['sh', '-c', 'cat; echo err >&2; exit 3'],
      stdin: Buffer.from('in'),
    })
    expect(result).toMatchObject({ exitCode: 3, stdout: 'in', stderr: 'err\n', reason: 'exit' })
    expect(sandbox.served()).toEqual({ warm: 1, cold: 0 })
  })

  test('gives every run a fresh one', async () => {
    await using sandbox = await open()
    await sandbox.exec({ command: ['sh', '-c', 'echo x > /tmp/left'] })
    await whenReady(sandbox)
    expect(await sandbox.exec({ command: ['ls', '-A', '/tmp'] })).toMatchObject({ exitCode: 0, stdout: '' })
  })

  test('carries megabytes in both directions unchanged', async () => {
    await using sandbox = await open()
    const stdin = Buffer.alloc(4 << 20, 'abcdefg')
    const result = await sandbox.exec({ command: ['sha256sum'], stdin })
    await whenReady(sandbox)
    const chunks: Uint8Array[] = []
    await sandbox.exec({ command: ['cat'], stdin, onStdout: (chunk) => void chunks.push(chunk) })
    expect(Buffer.concat(chunks).equals(stdin)).toBe(true)
    expect(result.stdout).toMatch(/^[0-9a-f]{64}/)
    expect(sandbox.served().warm).toBeGreaterThan(0)
  })

  test('lets a command wait for a slow listener', async () => {
    await using sandbox = await open()
    let busy = 0
    let most = 0
    const result = await sandbox.exec({
      command: ['sh', '-c', 'head -c 1000000 /dev/zero'],
      onStdout: async () => {
        most = Math.max(most, ++busy)
        await sleep(5)
        busy -= 1
      },
    })
    expect(result.exitCode).toBe(0)
    expect(most).toBeGreaterThan(0)
  })

  test('ends a run that is aborted', async () => {
    await using sandbox = await open()
    const abort = new AbortController()
    const run = sandbox.exec({ command: ['sleep', '60'], signal: abort.signal })
    setTimeout(() => abort.abort('SIGTERM'), 200)
    expect(await run).toMatchObject({ reason: 'cancelled' })
  })

  test.each(['recvmsg', 'dup3', 'close_range', 'chdir', 'prlimit64'])(
    'serves a run under a filter that refuses %s, which who waits for a command needs',
    async (name) => {
      const cwd = await temporaryDirectory({ mode: 0o755 })
      const seccomp = join(cwd, 'filter.json')
      await writeFile(seccomp, JSON.stringify({ deny: [{ names: [name], errno: 'EPERM' }] }))
      await sleep(SETTLED_MS)
      await using sandbox = await openSandbox({ cwd, warm: 1, policy: { seccomp } })
      await whenReady(sandbox)
      expect(await sandbox.exec({ command: ['echo', 'served'] })).toMatchObject({ stdout: 'served\n', exitCode: 0 })
      expect(sandbox.served()).toEqual({ warm: 1, cold: 0 })
    },
  )

  test.each([0, 2])('sees a profile that was edited in its next run, with %d kept ready', async (warm) => {
    const cwd = await temporaryDirectory({ mode: 0o755 })
    const profile = join(await temporaryDirectory({ mode: 0o755 }), 'mine.yaml')
    const write = (word: string) => writeFile(profile, `sandbox: { env: { set: { WORD: ${word} } } }\n`)
    const command = ['sh', '-c', 'echo $WORD']
    await write('first')
    await sleep(SETTLED_MS)
    await using sandbox = await openSandbox({ cwd, profile, warm })
    if (warm > 0) await whenReady(sandbox, warm)
    expect(await sandbox.exec({ command })).toMatchObject({ stdout: 'first\n' })
    expect(await sandbox.exec({ command })).toMatchObject({ stdout: 'first\n' })
    await write('other')
    expect(await sandbox.exec({ command })).toMatchObject({ stdout: 'other\n' })
    if (warm > 0) await whenReady(sandbox, warm)
    expect(await sandbox.exec({ command })).toMatchObject({ stdout: 'other\n' })
  })

  test.each([0, 2])("follows the caller's variables from run to run, with %d kept ready", async (warm) => {
    const options = { cwd: await temporaryDirectory({ mode: 0o755 }), policy: { env: { inherit: ['MY_WORD'] } }, warm }
    await using sandbox = await openSandbox(options)
    if (warm > 0) await whenReady(sandbox, warm)
    const printed = async (env: NodeJS.ProcessEnv) =>
      (await sandbox.exec({ command: ['sh', '-c', 'echo "$MY_WORD"'], env: { ...process.env, ...env } })).stdout
    expect([await printed({ MY_WORD: 'a' }), await printed({ MY_WORD: 'b' }), await printed({})]).toEqual([
      'a\n',
      'b\n',
      '\n',
    ])
  })

  test.each([0, 2])(
    'does not run in a directory that was put in the place of its own, with %d kept ready',
    async (warm) => {
      const parent = await temporaryDirectory({ mode: 0o755 })
      const cwd = join(parent, 'place')
      await mkdir(cwd)
      await writeFile(join(cwd, 'old'), '')
      await using sandbox = await openSandbox({ cwd, warm })
      if (warm > 0) await whenReady(sandbox, warm)
      expect(await sandbox.exec({ command: ['ls'] })).toMatchObject({ stdout: 'old\n' })
      await rename(cwd, join(parent, 'moved'))
      await expect(sandbox.exec({ command: ['ls'] })).rejects.toMatchObject({ code: 'ZONE_INVALID' })
      await mkdir(cwd)
      await writeFile(join(cwd, 'new'), '')
      expect(await sandbox.exec({ command: ['ls'] })).toMatchObject({ stdout: 'new\n' })
    },
  )

  test.each([
    ['short', ['printf', '%s.', '--framed', '', '-- x']],
    ['long', ['printf', '%s.', 'x'.repeat(100_000)]],
  ])('hands a %s command over as it is', async (_case, command) => {
    await using sandbox = await openSandbox({ warm: 0, policy: { resources: { output: '1m' } } })
    const [, , ...words] = command
    expect(await sandbox.exec({ command })).toMatchObject({ stdout: `${words.join('.')}.` })
  })

  test('is as good cold as warm when nothing is ready', async () => {
    await using sandbox = await openSandbox({ warm: 0 })
    expect(await sandbox.exec({ command: ['echo', 'cold'] })).toMatchObject({ stdout: 'cold\n' })
    expect(sandbox.served()).toEqual({ warm: 0, cold: 1 })
  })

  test('gives each run the variables that its caller has then', async () => {
    await using sandbox = await openSandbox({ warm: 0, policy: { env: { inherit: ['SHOWN'] } } })
    const command = ['sh', '-c', 'echo "$SHOWN."']
    const shown = async (SHOWN: string | undefined) =>
      (await sandbox.exec({ command, env: { ...process.env, ...(SHOWN !== undefined && { SHOWN }) } })).stdout
    await sandbox.exec({ command }) // The plan is kept from now on.
    for (const value of ['one', 'one', 'two', undefined, 'one']) expect(await shown(value)).toBe(`${value ?? ''}.\n`)
  })

  test('has sandboxes ready again, without a run, when what builds them has ended', async () => {
    await using sandbox = await open(1)
    const ours = await Promise.all((await ownDescendants()).map(async (pid) => ({ pid, name: await commOf(pid) })))
    const keepers = ours.filter(({ name }) => name === 'pool')
    expect(keepers).toHaveLength(1)
    for (const { pid } of keepers) process.kill(pid, 'SIGKILL')
    await until(async () => (sandbox.ready() === 0 ? true : undefined), 'the end of what was ready')
    await until(async () => (sandbox.ready() > 0 ? true : undefined), 'a sandbox of another keeper')
    expect(await sandbox.exec({ command: ['echo', 'warm'] })).toMatchObject({ stdout: 'warm\n' })
  })

  test('keeps nothing open of plans for other environments', async () => {
    await using sandbox = await openSandbox({ warm: 0 })
    const runs = 6
    const before = openDescriptors()
    for (let n = 0; n < runs; n++) {
      const env = { ...process.env, PATH: `/usr/bin:/bin:/usr/no-${n}` }
      expect(await sandbox.exec({ command: ['true'], env })).toMatchObject({ exitCode: 0 })
    }
    await until(async () => (openDescriptors() < before + runs ? true : undefined), 'as few descriptors as before')
  })

  test(`does not grow in ${GROWTH_RUNS} runs`, { timeout: 600_000 }, async () => {
    await using sandbox = await open(4)
    for (let n = 0; n < 20; n++) await sandbox.exec({ command: ['true'] })
    const before = openDescriptors()
    for (let n = 0; n < GROWTH_RUNS; n++) {
      const { exitCode, stdout, error } = await sandbox.exec({ command: ['printf', `${n}`] })
      expect({ exitCode, stdout, error }).toEqual({ exitCode: 0, stdout: `${n}`, error: undefined })
    }
    await until(async () => (openDescriptors() <= before + 8 ? true : undefined), 'as few descriptors as before')
    expect(sandbox.served().warm).toBeGreaterThan(0)
  })

  test(`loses no result when ${SOAK} times something is killed`, { timeout: 600_000 }, async () => {
    const sandbox = await open(2)
    try {
      for (let n = 0; n < SOAK; n++) {
        await killSomething(n, sandbox)
        await sleep(50) // A process that is being killed may still take a command, whose end then is its own.
        const { exitCode, reason, error } = await sandbox.exec({ command: ['sh', '-c', 'exit 7'] })
        expect({ n, exitCode, reason, error }).toEqual({ n, exitCode: 7, reason: 'exit', error: undefined })
      }
      for (let n = 0; n < SOAK / 10; n++) {
        const run = sandbox.exec({ command: ['sh', '-c', 'sleep 0.1; exit 7'] })
        await sleep((n * 37) % 100)
        await killSomething(n, sandbox)
        const { exitCode, reason } = await run
        // A sandbox that is killed under a running command loses its end, and that must be reported.
        expect([7, null]).toContain(exitCode)
        expect(['exit', 'setup', 'lost', 'signal', 'cancelled']).toContain(reason)
      }
    } finally {
      await sandbox.close()
    }
    await until(async () => ((await ownDescendants()).length === 0 ? true : undefined), 'the end of all processes')
  })
})

/** A process of ours that belongs to the pool: the keeper, a launcher, an engine or PID 1. */
async function killSomething(n: number, sandbox: Sandbox): Promise<void> {
  const victims = await ownDescendants()
  const victim = victims[(n * 7919) % Math.max(1, victims.length)]
  if (victim !== undefined) {
    try {
      process.kill(victim, 'SIGKILL')
    } catch {
      // It has just ended by itself.
    }
  }
  if (n % 3 === 0 && sandbox.ready() === 0) await sleep(20)
}

async function ownDescendants(pid = process.pid): Promise<readonly number[]> {
  const tasks = await readdir(`/proc/${pid}/task`).catch(() => [])
  const texts = await Promise.all(
    tasks.map((task) => readFile(`/proc/${pid}/task/${task}/children`, 'utf8').catch(() => '')),
  )
  const direct = texts.join(' ').split(' ').filter(Boolean).map(Number)
  const named = await Promise.all(direct.map(async (child) => [child, await commOf(child)] as const))
  const ours = named.filter(([, name]) => /^(pool|launch|bwrap|\.init)$/.test(name)).map(([child]) => child)
  return [...ours, ...(await Promise.all(ours.map((child) => ownDescendants(child)))).flat()]
}

const commOf = async (pid: number): Promise<string> =>
  (await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')).trim()

for (const engine of ['bwrap', 'unshare'] as const) {
  describeWith([engine, 'userns'], `the contract in a warm sandbox (${engine})`, () => {
    for (const row of CONTRACT) {
      test(row.sentence, { timeout: 60_000 }, async () => {
        const { landlockAbi } = await observeForDoctor(process.env)
        const verdict = await tryRow(row, { engine, landlockAbi, runner: warmRunner })
        expect(verdict, row.id).toMatchObject({ kind: expectedKind(row, landlockAbi) })
      })
    }
  })
}
