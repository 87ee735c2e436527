/** The library, by `exec()` and in warm sandboxes. By the other ways: library.deep.system.test.ts. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { execa } from 'execa'
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { SandboxExecutor } from '../../src/executor.ts'
import { exec, openSandbox, serveTasks, spawn } from '../../src/index.ts'
import { newDirectory, temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { checkoutFor, currentUser } from '../support/users.ts'
import { sandboxPromises } from './promises.ts'
import { alone, inLiveSandbox, inSandbox } from './ways.ts'

describeWith(['bwrap', 'userns'], 'by exec():', () => sandboxPromises(alone()))
describeWith(['bwrap', 'userns'], 'by a warm sandbox:', () => sandboxPromises(inSandbox(1)))

describeWith(['bwrap', 'userns'], 'by a sandbox that lives:', () => {
  // Node's own pipes leave up to 35 MB of garbage before it is collected the first time; from then on memory must be flat.
  beforeAll(async () => {
    const command = ['head', '-c', '268435456', '/dev/zero']
    await using sandbox = await openSandbox({
      ...{ cwd: (await newDirectory({ mode: 0o755 })).path, warm: 0, policy: { resources: { timeout: '3m' } } },
    })
    expect((await sandbox.run({ command })).exitCode).toBe(0)
  })
  sandboxPromises(inLiveSandbox())
})

describeWith(['bwrap', 'userns'], 'a sandbox that lives', () => {
  test('is the same for each command, and keeps the state of those that ask for it', async () => {
    const cwd = await temporaryDirectory({ mode: 0o755 })
    await using sandbox = await openSandbox({ cwd, warm: 0, env: { PATH: process.env['PATH'], OWN: 'caller' } })
    const run = (line: string, more = {}) => sandbox.run({ command: ['sh', '-c', line], ...more })
    const keepState = true
    const first = await run('cd /tmp; export A=1; f() { echo f; }; echo x >file; (sleep 300; : left) &', { keepState })
    expect(first).toMatchObject({ ok: true, warnings: [] })
    const next = await run('pwd; echo $A $B; f; cat file; cat >&2', { keepState, env: { B: '2' }, stdin: 'typed' })
    expect(next).toMatchObject({ stdout: '/tmp\n1 2\nf\nx\n', stderr: 'typed' })
    expect(await run('pwd; echo "$A$OWN"; cat /tmp/file; cat /proc/[0-9]*/comm | grep -c sleep')).toMatchObject({
      stdout: '/workspace\n\nx\n1\n',
    })
    expect((await run('pwd', { keepState, workdir: '/usr' })).stdout).toBe('/usr\n')
    expect((await run('pwd', { keepState: 'reset' })).stdout).toBe('/workspace\n')
    const { warnings } = await run('exec true', { keepState })
    expect(warnings).toEqual([expect.stringContaining('the earlier state remains')])
    expect(await run('sleep 300', { timeout: 200 })).toMatchObject({
      reason: 'timeout',
      message: 'stopped after 200 ms (timeout of this command)',
    })
    // The others have a sandbox each.
    expect((await sandbox.exec({ command: ['ls', '/tmp'] })).stdout).toBe('')
  })

  test('that has ended is replaced, and the next result says so; closed, it takes no command', async () => {
    const sandbox = await openSandbox({ cwd: await temporaryDirectory({ mode: 0o755 }), warm: 0 })
    const run = (line: string) => sandbox.run({ command: ['sh', '-c', line] })
    await run('echo x >/tmp/file')
    expect(await run('kill -KILL -1')).toMatchObject({ reason: 'lost' })
    const [again, other] = await Promise.all([run('cat /tmp/file'), run('true')])
    expect(again.exitCode).toBe(1)
    expect([...again.warnings, ...other.warnings]).toEqual([expect.stringContaining('earlier commands has ended')])
    const stopped = run('sleep 300')
    const live = run('echo started')
    expect((await live).ok).toBe(true)
    await sandbox.close()
    expect((await stopped).ok).toBe(false)
    await expect(run('true')).rejects.toMatchObject({ code: 'SANDBOX_CLOSED' })
    await expect(sandbox.run({ command: ['true'], cwd: '/' } as never)).rejects.toMatchObject({
      code: 'OPTIONS_INVALID',
    })
  })

  test('is refused where its backend has none, and where its changes would wait unnoticed', async () => {
    const zones = [{ hostPath: '.', mode: 'cow' as const }]
    await using layered = await openSandbox({
      ...{ cwd: await temporaryDirectory({ mode: 0o755 }), warm: 0, policy: { zones } },
    })
    await expect(layered.run({ command: ['true'] })).rejects.toMatchObject({ code: 'POLICY_INVALID' })
    await using sandbox = await openSandbox({
      ...{ warm: 0, policy: { backend: 'process' }, env: { ...process.env, LLM_DO_ALLOW_UNSANDBOXED: '1' } },
    })
    await expect(sandbox.run({ command: ['true'] })).rejects.toMatchObject({ code: 'NO_BACKEND' })
  })
})

async function textOf(stream: Readable): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

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
  test('is fed and read by a spawned command, and holds up no time limit when its output is not read', async () => {
    const cwd = await temporaryDirectory({ mode: 0o755 })
    const command = ['sh', '-c', 'test -t 0 && read line && echo "got $line"']
    const child = spawn({ command, cwd, policy: { tty: true } })
    child.stdin.write('word\n')
    expect(await textOf(child.stdout)).toContain('got word')
    expect(await child.result).toMatchObject({ exitCode: 0 })
    const policy = { tty: true, resources: { timeout: '500ms' } }
    expect(await spawn({ command: ['yes'], cwd, policy }).result).toMatchObject({ ok: false, reason: 'timeout' })
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

  test('is not run without the rules or the record that a variable asks for', async () => {
    const command = ['true']
    const refused = { code: 'POLICY_INVALID', message: expect.stringContaining('LLM_DO_EXEC_AUDIT') }
    vi.stubEnv('LLM_DO_EXEC_AUDIT', '/nowhere/log')
    onTestFinished(() => void vi.unstubAllEnvs())
    const source = {
      take: async () => undefined,
      progress: async () => undefined,
      isCancelled: async () => false,
      report: async () => undefined,
    }
    const calls = [
      exec({ command }),
      spawn({ command }).result,
      openSandbox(),
      new SandboxExecutor().execute(command),
      serveTasks({ source }),
    ]
    for (const call of calls) await expect(call).rejects.toMatchObject(refused)
    expect(await exec({ command, env: { PATH: process.env.PATH } })).toMatchObject({ ok: true })
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
