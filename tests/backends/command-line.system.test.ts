/** The built command on docker and process: status, streams and messages as a person meets them. */
import { chmod, chown, readFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { execa } from 'execa'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { SandboxExecutor } from '../../src/executor.ts'
import { type CliOptions, cliWords, runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { BUSYBOX_IMAGE, startDocker, type TestDocker } from '../support/docker.ts'
import { describeWith, testWith } from '../support/needs.ts'

/** An ordinary user who owns the zones, also when root runs the tests. */
const OWNER = 1000

async function ownedDirectory(): Promise<string> {
  const path = await temporaryDirectory({ mode: 0o755 })
  await chown(path, OWNER, OWNER)
  return path
}

async function run(words: readonly string[], options: CliOptions = {}) {
  const { status, stdout, stderr } = await runCli(words, options)
  return { status, stdout: stdout.toString(), stderr: stderr.toString() }
}

describeWith('docker', 'the command line on docker', () => {
  const state: { docker?: TestDocker } = {}
  beforeAll(async () => {
    state.docker = await startDocker()
  })
  afterAll(() => state.docker?.stop())

  const env = (): Readonly<Record<string, string>> => state.docker?.env ?? {}
  const containers = () => state.docker?.client('ps', '--all', '--quiet')

  test('passes streams and the exit status, and says with --log how it was isolated', async () => {
    const script = 'cat; echo err >&2; exit 3'
    const words = ['--log', '--backend', 'docker', '--image', BUSYBOX_IMAGE, '--', 'sh', '-c', script]
    const cwd = await ownedDirectory()
    expect(await run(words, { env: env(), cwd, stdin: 'in\n' })).toEqual({
      status: 3,
      stdout: 'in\n',
      stderr: 'err\nDocker isolation: ENABLED (Secure)\n',
    })
    expect(await containers()).toBe('')
  })

  test('gives a terminal with --tty, and what is typed reaches it', async () => {
    const cwd = await ownedDirectory()
    const script = 'test -t 0 && test -t 1 && echo terminal; read -r line; echo "got $line"; exit 5'
    const words = ['--backend', 'docker', '--image', BUSYBOX_IMAGE, '--tty', '--', 'sh', '-c', script]
    const quoted = cliWords(words).map((word) => `'${word.replaceAll("'", `'\\''`)}'`)
    const home = await temporaryDirectory()
    const { stdout, exitCode } = await execa('script', ['-qefc', quoted.join(' '), '/dev/null'], {
      cwd,
      env: { ...env(), HOME: home },
      input: 'typed\n',
      reject: false,
    })
    expect(stdout).toContain('terminal\r\n')
    expect(stdout).toContain('got typed')
    expect(exitCode).toBe(5)
    expect(await containers()).toBe('')
  })

  test('takes away with prune the sessions of this user, and nothing else that runs', async () => {
    const start = async (...words: readonly string[]) =>
      (await state.docker?.client('run', '--detach', '--network', 'none', ...words, BUSYBOX_IMAGE, 'sleep', '600')) ??
      ''
    const session = (uid: number) => start('--label', 'llm-do=session', '--name', `llm-do-session-${uid}-plan-image`)
    await session(process.getuid?.() ?? 0)
    const kept = [await start(), await session(54_321), await start('--label', 'llm-do=run')]
    expect(await run(['prune'], { program: 'llm-do', env: env() })).toMatchObject({ status: 0, stdout: '1 removed\n' })
    const left = (await state.docker?.client('ps', '--all', '--quiet', '--no-trunc'))?.split('\n')
    expect(left?.sort()).toEqual(kept.sort())
    await state.docker?.client('rm', '--force', ...kept)
  })

  test('serves the executor, with the programs of an image', async () => {
    for (const [name, value] of Object.entries(env())) vi.stubEnv(name, value)
    const log: string[] = []
    const executor = new SandboxExecutor({ memoryLimit: '256m', cpuLimit: '1.5', log: (line) => log.push(line) })
    const workspaceDir = await ownedDirectory()
    const result = await executor.executeIn('echo made > made; pwd; exit 0', 'bash', {
      image: BUSYBOX_IMAGE,
      workspaceDir,
    })
    vi.unstubAllEnvs()
    expect(result).toMatchObject({ success: true, stdout: '/workspace\n', exitCode: 0, timedOut: false })
    expect(await readFile(join(workspaceDir, 'made'), 'utf8')).toBe('made\n')
    expect(log).toEqual(['Docker isolation: ENABLED (Secure)'])
    expect(await containers()).toBe('')
  })

  testWith(['plain-user', 'docker'], 'says that this user may not use the socket', async () => {
    const directory = await temporaryDirectory({ mode: 0o755 })
    const socket = join(directory, 'socket')
    const server = createServer().listen(socket)
    await new Promise((resolve) => server.once('listening', resolve))
    await chmod(socket, 0o600)
    const ran = await run(['--backend', 'docker', '--', 'true'], {
      as: 'plain',
      env: { ...env(), HOME: directory, DOCKER_HOST: `unix://${socket}` },
    })
    server.close()
    expect(ran).toMatchObject({ status: 125, stderr: expect.stringMatching(/NO_BACKEND.*(permission|may not)/i) })
  })
})

describe('the command line where no container can be had', () => {
  test.each([
    ['no client', { LLM_DO_DOCKER: 'no-such-docker' }, /no docker on PATH.*\n.*install Docker/],
    [
      'a daemon that is down',
      { DOCKER_HOST: 'unix:///nonexistent/socket' },
      /does not answer.*\n.*systemctl start docker/,
    ],
  ])('with %s refuses, says why, and prune passes over it', async (_what, env, message) => {
    const ran = await run(['--backend', 'docker', '--', 'true'], { env })
    expect(ran).toMatchObject({ status: 125, stderr: expect.stringMatching(message) })
    expect(await run(['prune'], { program: 'llm-do', env })).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^\d+ removed\n$/),
    })
  })
})

describe('the command line on process', () => {
  const words = ['--backend', 'process', '--', 'sh', '-c', 'echo out; exit 3']

  test('refuses without the second half of the opt-in', async () => {
    expect(await run(words)).toMatchObject({
      status: 125,
      stdout: '',
      stderr: expect.stringMatching(/LLM_DO_ALLOW_UNSANDBOXED=1/),
    })
  })

  test('runs with both, and says that nothing is isolated', async () => {
    const ran = await run(['--log', ...words], { env: { LLM_DO_ALLOW_UNSANDBOXED: '1' } })
    expect(ran).toMatchObject({ status: 3, stdout: 'out\n' })
    expect(ran.stderr).toContain('Isolation: DISABLED (Host process)')
    expect(ran.stderr).toContain('Execution context: Host process (LEGACY MODE)')
  })
})
