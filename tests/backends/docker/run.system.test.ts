/**
 * Real containers on a daemon of the tests' own: the walls, the ends and the protected paths, each once with its control, and the command
 * line. What every backend must do is in tests/conformance; the rest is in more.deep.system.test.ts.
 */
import { spawn } from 'node:child_process'
import { chmod, chown, lstat, mkdir, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { dockerInputs } from '../../../src/backends/docker/inputs.ts'
import { observeDocker } from '../../../src/backends/docker/observe.ts'
import { sweep } from '../../../src/backends/docker/prune.ts'
import { SandboxExecutor } from '../../../src/executor.ts'
import { nativeDirectory } from '../../../src/os/native-programs.ts'
import type { Plan } from '../../../src/plan/plan.ts'
import { bundle } from '../../support/bundle.ts'
import { type CliOptions, cliWords, runCli } from '../../support/cli.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import {
  BUSYBOX_IMAGE,
  ENVIRONMENT_IMAGE,
  LINKS_IMAGE,
  oncePerFile,
  startDocker,
  VOLUME_IMAGE,
} from '../../support/docker.ts'
import { describeWith, testWith } from '../../support/needs.ts'
import { dockerPlan, text } from '../plans.ts'
import {
  absentZone,
  containers,
  endsTheRun,
  engine,
  expectKept,
  hasFile,
  OWNER,
  observedZone,
  ownedDirectory,
  PROTECT,
  RENAMES,
  type RunRequest,
  repository,
  runIn,
  session,
  until,
} from './runs.ts'

const docker = oncePerFile(() => startDocker({ images: [VOLUME_IMAGE, ENVIRONMENT_IMAGE, LINKS_IMAGE] }))
const here = engine(docker)
const run = (request: RunRequest) => runIn(here(), request)
const shell = (script: string, request: Omit<RunRequest, 'command'> = {}) =>
  run({ command: ['sh', '-c', script], ...request })
const inputs = () => dockerInputs(here().fact, here().docker.env)

describeWith('docker', 'a docker container', () => {
  test('is reported with what its daemon can hold', () => {
    expect(here().fact).toMatchObject({ program: 'docker', server: { ok: true }, rootless: false, remote: false })
    expect(here().fact.limits).toEqual(['memory', 'swap', 'cpus', 'pids'])
  })

  test('tells a script whose interpreter is not there from an exit code', async () => {
    const path = '/bin/no-interpreter'
    const outcome = await run({ command: [path] })
    expect(outcome).toMatchObject({ reason: 'setup', exitCode: null, failure: { path, errno: 'ENOENT' } })
    expect(text(outcome.stderr)).toBe('')
  })

  // Docker's 137 means SIGKILL, with which the test of the walls below ends.
  test('takes with it what the command leaves behind, says what was used, and tells the exit code 137 from SIGKILL', async () => {
    const eat = 'dd if=/dev/zero of=/dev/null bs=50M count=4 2>/dev/null & wait $!'
    const outcome = await shell(`${eat}; setsid sleep 600 >/dev/null 2>&1 & exit 137`)
    expect(outcome).toMatchObject({ reason: 'exit', exitCode: 137, signal: null, killed: 1 })
    expect(await containers(here())).toBe('')
    expect(outcome.usage.peakMemory).toBeGreaterThan(50 << 20)
    expect(outcome.usage.cpuMs).toBeGreaterThan(0)
    expect(outcome.durationMs).toBeGreaterThan(0)
  })

  test('cannot report for its init: nothing listens on the socket any more', async () => {
    const forge = [
      'import os, socket, sys',
      'try:',
      '  with socket.socket(socket.AF_UNIX) as door:',
      '    door.connect("/.llm-do-report")',
      '    door.sendall(b\'{"cause":"exit","waitStatus":9}\\n\')',
      'except OSError: pass',
      'try: os.kill(1, 9)',
      'except OSError: pass',
      'try: os.listdir("/proc/1/fd")',
      'except PermissionError: sys.exit(4)',
    ]
    const plan = { image: LINKS_IMAGE, zones: [observedZone({ source: '/usr', target: '/usr' })] }
    const outcome = await run({ command: ['python3', '-c', forge.join('\n')], plan })
    expect(outcome).toMatchObject({ reason: 'exit', exitCode: 4, signal: null })
    expect(await readdir(join(here().runsDirectory, '../containers'))).toEqual([])
  })

  test('is killed when the caller cancels', async () => {
    const abort = new AbortController()
    const source = await ownedDirectory()
    const plan = { zones: [observedZone({ source, target: '/w', mode: 'rw' })] }
    const running = shell('touch /w/started; sleep 60', { plan, signal: abort.signal })
    await until(hasFile(source, 'started'))
    abort.abort('SIGTERM')
    expect(await running).toMatchObject({ reason: 'cancelled', cancelledBy: 'SIGTERM' })
    expect(await containers(here())).toBe('')
  })

  test('is no root, has no capabilities, no new privileges and a read-only root; the filter allows less than docker’s', async () => {
    const filtered = 'unshare -U true; echo $?; chmod 4755 /tmp; echo $?'
    const { stdout, stderr, ...end } = await shell(
      `id -u; grep -E "^(Cap|NoNewPrivs|Seccomp:)" /proc/self/status; touch /x; ls /sys/class/net; ${filtered}; kill -KILL $$`,
    )
    expect(end).toMatchObject({ reason: 'signal', exitCode: null, signal: 'SIGKILL' })
    expect(text(stdout)).toMatch(/^65534\n/)
    expect(text(stdout).match(/Cap\w+:\t0000000000000000/g)).toHaveLength(5)
    expect(text(stdout)).toContain('NoNewPrivs:\t1\nSeccomp:\t2\n')
    expect(text(stdout)).toMatch(/\nlo\n1\n1\n$/)
    expect(text(stderr)).toContain('touch: /x: Read-only file system')
    // The control: without the filter the same kernel and user may do it.
    const open = await shell(filtered, { plan: { seccomp: { profile: 'off', arch: 'x64', filter: '' } } })
    expect(text(open.stdout)).toBe('0\n0\n')
  })

  test('gets its variables exactly, those of its image too, and no proxy of the image or of the client, which may hold a password', async () => {
    const commandEnv = {
      HOME: '/x',
      PATH: '/bin',
      LD_PRELOAD: '/no.so',
      JSON: '{"a": "b c"}',
      TEXT: ' a\n#b=c\n',
      TAIL: 'x\r',
    }
    const config = await temporaryDirectory()
    const proxies = { default: { httpProxy: 'http://user:s3cret@proxy.example' } }
    await writeFile(join(config, 'config.json'), JSON.stringify({ proxies }))
    const { docker, fact } = here()
    const withConfig = dockerInputs(fact, { ...docker.env, DOCKER_CONFIG: config })
    const command = ['env', '-0']
    const outcome = await run({ command, plan: { image: ENVIRONMENT_IMAGE }, run: { commandEnv, docker: withConfig } })
    const entries = text(outcome.stdout).split('\0').filter(Boolean)
    const seen = Object.fromEntries(entries.map((entry) => entry.split(/=(.*)/s).slice(0, 2)))
    expect(seen).toEqual({ ...commandEnv, HOSTNAME: 'sandbox', IMAGE_WORD: 'image' })
    // The control: the plain client passes the proxy on.
    const env = await docker.client('--config', config, 'run', '--rm', '--network', 'none', BUSYBOX_IMAGE, 'env')
    expect(env).toContain('s3cret')
  })

  test('sees a zone on any path, writes to a rw zone as its owner by the mask of the caller, and owns its scratch', async () => {
    const base = await ownedDirectory()
    const [odd, out] = [join(base, 'a:b, "c"\nd e'), join(base, 'out')]
    for (const directory of [odd, out]) await mkdir(directory)
    await chown(out, OWNER, OWNER)
    await writeFile(join(odd, 'file'), 'found')
    const zones = [
      observedZone({ source: odd, target: '/in' }),
      observedZone({ source: out, target: '/out', mode: 'rw' }),
    ]
    const before = process.umask(0o037)
    onTestFinished(() => void process.umask(before))
    const outcome = await shell(
      'cat /in/file; umask; echo y >/home/sandbox/f && echo z >/tmp/f && echo x >/out/f; touch /in/new',
      {
        plan: { zones },
      },
    )
    expect(text(outcome.stdout)).toBe('found0037\n')
    expect(text(outcome.stderr)).toMatch(/^touch: .*Read-only file system\n$/)
    expect(await readdir(odd)).toEqual(['file'])
    const { uid, mode } = await lstat(join(out, 'f'))
    expect([uid, mode & 0o777]).toEqual([OWNER, 0o640])
  })

  test('refuses, with the fix, an image that is not here, is none or has a volume, and a zone that is gone; and leaves nothing', async () => {
    const gone = observedZone({ source: '/nonexistent/x', target: '/x' })
    const refused: readonly (readonly [Partial<Plan>, string, RegExp, RegExp])[] = [
      [{ image: 'no:1' }, 'SETUP_FAILED', /no:1 is not on this machine/, /docker pull no:1/],
      [{ image: 'NOT AN IMAGE' }, 'POLICY_INVALID', /expected NAME\[:TAG\]/, /--image/],
      [{ image: VOLUME_IMAGE }, 'ZONE_INVALID', /declares \/data as volumes/, /--tmpfs \/data/],
      [{ zones: [gone] }, 'ZONE_INVALID', /\/nonexistent\/x has changed/, /run again/],
    ]
    for (const [plan, code, message, hint] of refused)
      await expect(run({ command: ['true'], plan })).rejects.toMatchObject({
        code,
        message: expect.stringMatching(message),
        hint: expect.stringMatching(hint),
      })
    expect(await containers(here())).toBe('')
    expect(await here().docker.client('volume', 'ls', '--quiet')).toBe('')
  })

  test('reports a daemon that is down', async () => {
    const env = { ...here().docker.env, DOCKER_HOST: 'unix:///nonexistent/socket' }
    const end = run({ command: ['true'], run: { docker: dockerInputs(here().fact, env) } })
    await expect(end).rejects.toMatchObject({ code: 'NO_BACKEND', message: expect.stringMatching(/does not answer/) })
    const observed = await observeDocker({ env, notBelow: [] })
    const message = expect.stringMatching(/Cannot connect|failed to connect/)
    expect(observed?.server).toMatchObject({ ok: false, message })
  })

  test('is removed when its runner is killed, and what it made of protected names until then is set aside', async () => {
    const source = await ownedDirectory()
    const { docker, fact } = here()
    const zones = [observedZone({ source, target: '/w', mode: 'rw', protect: ['.mcp.json'] })]
    const plan = dockerPlan({ image: BUSYBOX_IMAGE, workdir: '/', zones })
    const program = await bundle(join(import.meta.dirname, '../../programs/run-docker.ts'), await temporaryDirectory())
    const [init, guard] = ['container', 'llm-do'].map((name) => join(nativeDirectory(), name))
    const runsDirectory = join(await temporaryDirectory(), 'runs')
    // The container continues until it has made the name: it is removed too late.
    const client = join(await temporaryDirectory(), 'docker')
    const late = `touch ${source}/killed; until [ -e ${source}/.mcp.json ]; do sleep 0.05; done`
    await writeFile(client, `#!/bin/sh\n[ "$1" != rm ] || { ${late}; }\nexec ${fact.path} "$@"\n`, { mode: 0o755 })
    const script = 'touch /w/started; until [ -e /w/killed ]; do sleep 0.05; done; touch /w/.mcp.json; sleep 600'
    const request = { plan, fact: { ...fact, path: client }, env: docker.env, init, guard, runsDirectory }
    const words = JSON.stringify({ ...request, command: ['sh', '-c', script] })
    const runner = spawn(process.execPath, [program, words], { stdio: 'ignore' })
    await until(hasFile(source, 'started'))
    runner.kill('SIGKILL')
    const aside = new RegExp(`^\\.mcp\\.json\\.set-aside\\.killed${runner.pid}$`)
    await until(async () => (await readdir(source)).some((name) => aside.test(name)))
    expect(await containers(here())).toBe('')
    expect((await readdir(source)).sort()).toEqual([expect.stringMatching(aside), 'killed', 'started'])
    expect(await readdir(join(runsDirectory, '../containers'))).toEqual([])
  })

  test('whose runner is gone is removed by the next run; that of a live one is not', async () => {
    const { client } = here().docker
    const { runner } = inputs()
    const dead = `${runner.slice(0, runner.lastIndexOf('/'))}/999999999:1`
    const start = (owner: string) => {
      const labels = ['llm-do=run', `llm-do.runner=${owner}`].flatMap((label) => ['--label', label])
      return client('run', '--detach', '--network', 'none', ...labels, BUSYBOX_IMAGE, 'sleep', '600')
    }
    const [, alive] = [await start(dead), await start(runner)]
    const runsDirectory = join(await temporaryDirectory(), 'runs')
    expect(await sweep(inputs(), { now: Date.now(), runsDirectory })).toBe(1)
    expect(await client('ps', '--all', '--quiet', '--no-trunc')).toBe(alive)
    await client('rm', '--force', alive)
  })
})

describeWith('docker', 'the docker container of a session', () => {
  test('serves the runs of one plan, warns of what that costs, and reports each end exactly', async () => {
    const limits = { memory: { max: 33_554_432, by: 'docker' } } as const
    const { inside, prune } = await session(here(), { limits })
    expect(await inside('echo kept > /tmp/f; kill -9 $$')).toMatchObject({ exitCode: null, signal: 'SIGKILL' })
    const first = await containers(here())
    const second = await inside('cat /tmp/f; exit 137')
    expect(second).toMatchObject({ reason: 'exit', exitCode: 137, signal: null })
    expect(text(second.stdout)).toBe('kept\n')
    expect(second.warnings.join()).toContain('this container served earlier runs')
    expect(second.usage.peakMemory).toBeGreaterThan(0)
    expect(await containers(here())).toBe(first)
    const eaten = await inside('exec dd if=/dev/zero of=/dev/null bs=200M count=1')
    expect(eaten).toMatchObject({ reason: 'memory', signal: 'SIGKILL' })
    // One that was killed before does not make the next one look so.
    expect(await inside('kill -9 $$')).toMatchObject({ reason: 'signal', signal: 'SIGKILL' })
    await prune()
    expect(await containers(here())).toBe('')
  })

  test('whose command ends our init has lost its end, and says so', async () => {
    const { inside } = await session(here(), { limits: { timeoutMs: 60_000 } })
    const lost = await inside('kill -9 $PPID; sleep 600')
    expect(lost).toMatchObject({ reason: 'lost', exitCode: null, signal: null })
    // Its leftovers are gone with the container.
    expect(await containers(here())).toBe('')
  })

  test('ends with a run that leaves a process behind, or has to be stopped', async () => {
    const { inside, left } = await session(here(), { limits: { timeoutMs: 2_000 } })
    await inside('setsid sleep 600 >/dev/null 2>&1 & exit 0')
    expect(await containers(here())).toBe('')
    expect(await inside('sleep 600')).toMatchObject({ reason: 'timeout' })
    expect(await containers(here())).toBe('')
    expect([await left('sessions'), await left('containers')]).toEqual([[], []])
  })

  test('protects paths in every run, also after the host has replaced what stood there', async () => {
    const source = await ownedDirectory()
    const put = async (name: string) => {
      await writeFile(join(source, name), 'original')
      await chown(join(source, name), OWNER, OWNER)
    }
    await put('.claude')
    const zones = [observedZone({ source, target: '/w', mode: 'rw', protect: ['.mcp.json', '.claude'] })]
    const { inside } = await session(here(), { zones, limits: { timeoutMs: 60_000 } })
    for (const _run of ['before', 'after']) {
      expect(await inside('echo x > /w/.claude; mv /w/.claude /w/c; :')).toMatchObject({ reason: 'exit' })
      expect(await readdir(source)).toEqual(['.claude'])
      expect(await readFile(join(source, '.claude'), 'utf8')).toBe('original')
      await put('new')
      await rename(join(source, 'new'), join(source, '.claude'))
    }
    const made = await inside('echo x > /w/.mcp.json; sleep 600')
    expect(made).toMatchObject({ reason: 'protected', guarded: { attempts: { count: 1 } } })
    expect((await readdir(source)).sort()).toEqual(['.claude', expect.stringMatching(/^\.mcp\.json\.set-aside\./)])
  })

  test('is for one run at a time, another one gets its own container; prune ends none with a run inside', async () => {
    const source = await ownedDirectory()
    const zones = [observedZone({ source, target: '/w', mode: 'rw' })]
    const { inside, prune, left } = await session(here(), { zones, limits: { timeoutMs: 120_000 } })
    const script = 'echo $$ >>/tmp/f; touch /w/in.$1; until [ -e /w/out ]; do sleep 0.1; done; wc -l </tmp/f'
    const runs = ['1', '2'].map((name) => inside(script.replace('$1', name)))
    for (const name of ['in.1', 'in.2']) await until(hasFile(source, name))
    expect(await prune()).toBe(0)
    // Also by one that knows another directory, such as that of another login.
    expect(await prune(join(await temporaryDirectory(), 'runs'))).toBe(0)
    await writeFile(join(source, 'out'), '')
    expect((await Promise.all(runs)).map(({ stdout }) => text(stdout))).toEqual(['1\n', '1\n'])
    expect(await prune()).toBe(1)
    expect(await containers(here())).toBe('')
    expect([await left('sessions'), await left('containers')]).toEqual([[], []])
  })
})

describeWith('docker', 'protected paths in a docker container', () => {
  test('stay where they are with each directory on the way, which stays writable', async () => {
    const source = await repository()
    const zones = [observedZone({ source, target: '/w', mode: 'rw', protect: PROTECT })]
    expect(text((await shell(RENAMES, { plan: { zones } })).stdout)).toBe('')
    await expectKept(source)
  })

  test('could be moved away when only they themselves were mounts', async () => {
    const source = await repository()
    const bind = (path: string, more = '') => ['--mount', `type=bind,source=${source}${path},target=/w${path}${more}`]
    const mounts = [...bind(''), ...PROTECT.flatMap((path) => bind(`/${path}`, ',readonly'))]
    const plain = ['run', '--rm', '--network', 'none', '--user', String(OWNER), ...mounts, BUSYBOX_IMAGE]
    const moved = await here().docker.client(...plain, 'sh', '-c', `${RENAMES}; true`)
    expect(moved).toBe('moved .git\nmoved .config')
    expect(await readdir(join(source, '.git/hooks'))).toEqual(['pre-commit'])
  })

  endsTheRun(here, [['a repository further down', 'mkdir -p a/b/.git', 'a/b/.git']])

  test('are found at the end when the command was quicker, and made by a run that is not watched', async () => {
    const source = await ownedDirectory()
    const script = 'cd /w; ls -A; echo fine >f; echo x > .mcp.json'
    const outcome = await shell(script, { plan: { zones: [absentZone(source)] } })
    expect([outcome.reason, text(outcome.stdout)]).toEqual(['protected', ''])
    expect((await readdir(source)).sort()).toEqual([outcome.guarded?.attempts.first[0]?.aside, 'f'])
    const { git: _git, ...open } = absentZone(source, { protect: [] })
    const control = await shell(`${script}; mkdir .git`, { plan: { zones: [open] } })
    expect(control).toMatchObject({ reason: 'exit', exitCode: 0 })
    expect(await readdir(source)).toEqual(expect.arrayContaining(['.git', '.mcp.json']))
  })

  test('are refused without a guard, behind a link, and by a daemon that cannot show our init', async () => {
    const source = await repository()
    const { guard: _guard, ...unguarded } = inputs()
    const end = run({ command: ['true'], plan: { zones: [absentZone(source)] }, run: { docker: unguarded } })
    await expect(end).rejects.toMatchObject({ code: 'HELPER_MISSING' })
    await symlink('/etc', join(source, '.vscode'))
    const linked = [observedZone({ source, target: '/w', mode: 'rw', protect: ['.vscode'] })]
    await expect(run({ command: ['true'], plan: { zones: linked } })).rejects.toMatchObject({ code: 'ZONE_INVALID' })
    const zones = [observedZone({ source, target: '/w', mode: 'rw', protect: PROTECT })]
    const { init: _init, ...elsewhere } = { ...inputs(), remote: true }
    for (const docker of [{ ...inputs(), init: '/nonexistent/init' }, elsewhere])
      await expect(run({ command: ['true'], plan: { zones }, run: { docker } })).rejects.toMatchObject({
        code: 'SETUP_FAILED',
        message: expect.stringMatching(/is refused: the daemon cannot show container-init/),
      })
    expect(await containers(here())).toBe('')
  })
})

describeWith('docker', 'a docker container is refused', () => {
  test('when its zone is another directory than was planned', async () => {
    const source = await ownedDirectory()
    const zones = [observedZone({ source, target: '/w' })]
    await rename(source, `${source}.old`)
    await mkdir(source)
    await expect(run({ command: ['true'], plan: { zones } })).rejects.toMatchObject({
      code: 'ZONE_INVALID',
      message: `${source} has changed since the run was planned (it is another one)`,
    })
    await rm(`${source}.old`, { recursive: true })
  })

  test('when a file system below its read-only zone would be writable', async () => {
    const source = await ownedDirectory()
    const below = join(source, 'a b')
    await mkdir(below)
    await execa('mount', ['-t', 'tmpfs', '-o', 'mode=1777', 'none', below])
    onTestFinished(async () => void (await execa('umount', [below])))
    const script = 'echo x > "/w/a b/written"'
    const refused = await shell(script, { plan: { zones: [observedZone({ source, target: '/w' })] } })
    // A daemon whose read-only mounts are recursive protects it already.
    if (refused.reason === 'setup') expect(refused.failure).toMatchObject({ errno: 'EROFS', path: '/w/a b' })
    expect(await readdir(below)).toEqual([])
    const plain = ['run', '--rm', '--network', 'none', '--mount', `type=bind,source=${source},target=/w,readonly`]
    await here().docker.client(...plain, BUSYBOX_IMAGE, 'sh', '-c', `${script}; true`)
    const isRecursive = (await readdir(below)).length === 0
    expect(refused.reason).toBe(isRecursive ? 'exit' : 'setup')
  })

  describe('when a directory of its zone was exchanged after the look', () => {
    /** Root's secret behind a link in the zone of another user, for whom the directory is exchanged. */
    const prepared = async () => {
      const source = await repository()
      const closed = await temporaryDirectory({ mode: 0o700 })
      await mkdir(join(closed, 'open'))
      await writeFile(join(closed, 'open/secret'), 'TOPSECRET\n')
      await symlink(join(closed, 'open'), join(source, 'link'))
      await execa('chown', ['--recursive', '--no-dereference', `${OWNER}:${OWNER}`, source])
      return source
    }

    test.each([
      ['a link', 'mv .git away; mv link .git'],
      ['itself in another place', 'mv .git away; mkdir .git; touch .git/config; mv away .git/inner'],
    ])('for %s, by what the container has', async (_what, swap) => {
      const source = await prepared()
      const zones = [observedZone({ source, target: '/w', mode: 'rw', protect: ['.git/config'] })]
      const real = inputs()
      const client = join(await temporaryDirectory(), 'docker')
      const script = `if [ "$1" = start ]; then (cd ${source}; ${swap}); fi; exec ${real.path} "$@"`
      await writeFile(client, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
      const command = ['sh', '-c', 'touch /w/started; cat /w/.git/secret']
      const end = run({ command, plan: { zones }, run: { docker: { ...real, path: client } } })
      const seen = await end.catch((error: Error) => error)
      // The daemon itself refuses some of them: a mount has nothing to stand on.
      if (!(seen instanceof Error))
        expect(seen).toMatchObject({ reason: 'setup', failure: { path: '/w/.git', errno: 'ESTALE' } })
      expect(await readdir(source)).not.toContain('started')
    })

    test('the control: a daemon that gets the paths alone shows the secret', async () => {
      const source = await prepared()
      const mounts = ['', '/.git'].flatMap((path) => ['--mount', `type=bind,source=${source}${path},target=/w${path}`])
      const plain = ['create', '--rm', '--network', 'none', '--user', String(OWNER), ...mounts, BUSYBOX_IMAGE]
      const container = await here().docker.client(...plain, 'cat', '/w/.git/secret')
      await execa('sh', ['-c', 'mv .git away && mv link .git'], { cwd: source })
      expect(await here().docker.client('start', '--attach', container.trim())).toContain('TOPSECRET')
    })
  })
})

async function byCommand(words: readonly string[], options: CliOptions) {
  const { status, stdout, stderr } = await runCli(words, options)
  return { status, stdout: stdout.toString(), stderr: stderr.toString() }
}

describeWith('docker', 'the command line on docker', () => {
  test('passes streams and the exit status, and says with --log how it was isolated', async () => {
    const script = 'cat; echo err >&2; exit 3'
    const words = ['--log', '--backend', 'docker', '--image', BUSYBOX_IMAGE, '--', 'sh', '-c', script]
    const cwd = await ownedDirectory()
    expect(await byCommand(words, { env: here().docker.env, cwd, stdin: 'in\n' })).toEqual({
      status: 3,
      stdout: 'in\n',
      stderr: 'err\nDocker isolation: ENABLED (Secure)\n',
    })
    expect(await containers(here())).toBe('')
  })

  test('gives a terminal with --tty, and what is typed reaches it', async () => {
    const cwd = await ownedDirectory()
    const script = 'test -t 0 && test -t 1 && echo terminal; read -r line; echo "got $line"; exit 5'
    const words = ['--backend', 'docker', '--image', BUSYBOX_IMAGE, '--tty', '--', 'sh', '-c', script]
    const quoted = cliWords(words).map((word) => `'${word.replaceAll("'", `'\\''`)}'`)
    const home = await temporaryDirectory()
    const { stdout, exitCode } = await execa('script', ['-qefc', quoted.join(' '), '/dev/null'], {
      cwd,
      env: { ...here().docker.env, HOME: home },
      input: 'typed\n',
      reject: false,
    })
    expect(stdout).toContain('terminal\r\n')
    expect(stdout).toContain('got typed')
    expect(exitCode).toBe(5)
    expect(await containers(here())).toBe('')
  })

  test('takes away with prune the sessions of this user, and nothing else that runs', async () => {
    const start = (...words: readonly string[]) =>
      here().docker.client('run', '--detach', '--network', 'none', ...words, BUSYBOX_IMAGE, 'sleep', '600')
    const session = (uid: number) => start('--label', 'llm-do=session', '--name', `llm-do-session-${uid}-plan-image`)
    await session(process.getuid?.() ?? 0)
    const kept = [await start(), await session(54_321), await start('--label', 'llm-do=run')]
    expect(await byCommand(['prune'], { program: 'llm-do', env: here().docker.env })).toMatchObject({
      status: 0,
      stdout: '1 removed\n',
    })
    const left = (await here().docker.client('ps', '--all', '--quiet', '--no-trunc')).split('\n')
    expect(left.sort()).toEqual(kept.sort())
    await here().docker.client('rm', '--force', ...kept)
  })

  test('serves the executor, with the programs of an image', async () => {
    for (const [name, value] of Object.entries(here().docker.env)) vi.stubEnv(name, value)
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
    expect(await containers(here())).toBe('')
  })

  testWith(['plain-user', 'docker'], 'says that this user may not use the socket', async () => {
    const directory = await temporaryDirectory({ mode: 0o755 })
    const socket = join(directory, 'socket')
    const server = createServer().listen(socket)
    await new Promise((resolve) => server.once('listening', resolve))
    await chmod(socket, 0o600)
    const ran = await byCommand(['--backend', 'docker', '--', 'true'], {
      as: 'plain',
      env: { ...here().docker.env, HOME: directory, DOCKER_HOST: `unix://${socket}` },
    })
    server.close()
    expect(ran).toMatchObject({ status: 125, stderr: expect.stringMatching(/NO_BACKEND.*(permission|may not)/i) })
  })
})
