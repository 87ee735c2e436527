/** Real containers on a daemon of our own. What every backend must do is in tests/conformance; here is what only containers can get wrong. */
import { spawn } from 'node:child_process'
import { chmod, chown, lstat, mkdir, readdir, readFile, rename, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { dockerInputs } from '../../../src/backends/docker/inputs.ts'
import { observeDocker } from '../../../src/backends/docker/observe.ts'
import { sweep } from '../../../src/backends/docker/prune.ts'
import { takeSession } from '../../../src/backends/docker/session-lock.ts'
import type { SandboxError } from '../../../src/error.ts'
import { nativeDirectory } from '../../../src/os/native-programs.ts'
import type { Plan } from '../../../src/plan/plan.ts'
import { bundle } from '../../support/bundle.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import {
  BUSYBOX_IMAGE,
  ENVIRONMENT_IMAGE,
  LINKS_IMAGE,
  oncePerFile,
  startDocker,
  startPodman,
  VOLUME_IMAGE,
} from '../../support/docker.ts'
import { describeWith } from '../../support/needs.ts'
import { dockerPlan } from '../plans.ts'
import {
  containers,
  engine,
  OWNER,
  observedZone,
  ownedDirectory,
  type RunRequest,
  runIds,
  runIn,
  text,
} from './runs.ts'

const docker = oncePerFile(startDocker)
const podman = oncePerFile(startPodman)

describeWith('docker', 'a docker container', () => {
  const here = engine(docker)
  const run = (request: RunRequest) => runIn(here(), request)

  test('is reported with what its daemon can hold', () => {
    expect(here().fact).toMatchObject({ program: 'docker', server: { ok: true }, rootless: false, remote: false })
    expect(here().fact.limits).toEqual(['memory', 'swap', 'cpus', 'pids'])
  })

  test.each([0, 1, 2, 125, 126, 127, 137, 255])(
    'gives the exit code %i of the command, whatever docker means by it',
    async (code) => {
      const outcome = await run({ command: ['sh', '-c', `exit ${code}`] })
      expect(outcome).toMatchObject({ cause: 'exit', exitCode: code, signal: null })
      expect(await containers(here())).toBe('')
    },
  )

  test.each([
    ['a name that is not on PATH', 'nosuch', 'ENOENT'],
    ['a path that does not exist', '/bin/nosuch', 'ENOENT'],
    ['a file without the execute bit', '/bin/not-executable', 'EACCES'],
    ['a directory', '/bin', 'EISDIR'],
    ['a script whose interpreter is not there', '/bin/no-interpreter', 'ENOENT'],
  ])('tells %s from an exit code', async (_what, program, errno) => {
    const outcome = await run({ command: [program] })
    expect(outcome).toMatchObject({ cause: 'exec', exitCode: null, failure: { path: program, errno } })
    expect(text(outcome.stderr)).toBe('')
  })

  test.each(['KILL', 'TERM', 'SEGV', 'SYS'])(
    'tells an end by SIG%s from the exit code of that number',
    async (name) => {
      const outcome = await run({ command: ['sh', '-c', `kill -${name} $$`] })
      expect(outcome).toMatchObject({ cause: 'exit', exitCode: null, signal: `SIG${name}` })
    },
  )

  test('is told what was used, by whatever it started', async () => {
    const script = 'dd if=/dev/zero of=/dev/null bs=50M count=4 2>/dev/null & wait'
    const { usage, durationMs } = await run({ command: ['sh', '-c', script] })
    expect(usage.peakMemory).toBeGreaterThan(50 << 20)
    expect(usage.cpuMs).toBeGreaterThan(0)
    expect(durationMs).toBeGreaterThan(0)
  })

  test('takes with it what the command leaves behind, and says how much that was', async () => {
    const outcome = await run({ command: ['sh', '-c', 'setsid sleep 600 >/dev/null 2>&1 & exit 3'] })
    expect(outcome).toMatchObject({ cause: 'exit', exitCode: 3, killed: 1 })
  })

  test('cannot speak for its init: nothing listens on the socket any more', async () => {
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
    expect(outcome).toMatchObject({ cause: 'exit', exitCode: 4, signal: null })
    expect(await readdir(join(here().runsDirectory, '../containers'))).toEqual([])
  })

  test('without our init has the daemon’s word only: a signal is exit code 128+N', async () => {
    const { init: _init, ...docker } = dockerInputs(here().fact, here().docker.env)
    const killed = await run({ command: ['sh', '-c', 'kill -9 $$'], run: { docker } })
    expect(killed).toMatchObject({ cause: 'exit', exitCode: 137, signal: null, warnings: [] })
    expect(await run({ command: ['nosuch'], run: { docker } })).toMatchObject({
      cause: 'exec',
      failure: { errno: 'ENOENT' },
    })
  })

  test('makes files by the mask of its caller', async () => {
    const before = process.umask(0o037)
    try {
      expect(text((await run({ command: ['sh', '-c', 'umask; touch /tmp/f; stat -c %a /tmp/f'] })).stdout)).toBe(
        '0037\n640\n',
      )
    } finally {
      process.umask(before)
    }
  })

  test('goes without our init where the daemon cannot see it', async () => {
    const docker = { ...dockerInputs(here().fact, here().docker.env), init: '/nonexistent/init' }
    expect(await run({ command: ['sh', '-c', 'exit 5'], run: { docker } })).toMatchObject({
      cause: 'exit',
      exitCode: 5,
    })
  })

  test('ended by the memory limit says so, and the runner sees it in the daemon’s record', async () => {
    const limits = {
      memory: { max: 33_554_432, by: 'docker' },
      swap: { max: 0, by: 'docker' },
      timeoutMs: 30_000,
    } as const
    const outcome = await run({
      command: ['dd', 'if=/dev/zero', 'of=/dev/null', 'bs=200M', 'count=1'],
      plan: { limits },
    })
    expect(outcome).toMatchObject({ cause: 'memory', exitCode: null, signal: 'SIGKILL', events: { oomKill: 1 } })
  })

  test('is killed at the deadline and keeps what was printed', async () => {
    const outcome = await run({ command: ['sh', '-c', 'echo early; sleep 60'], plan: { limits: { timeoutMs: 2_000 } } })
    expect(outcome).toMatchObject({ cause: 'deadline', exitCode: null, signal: 'SIGKILL' })
    expect(text(outcome.stdout)).toBe('early\n')
    expect(await containers(here())).toBe('')
  })

  test('is killed when the caller cancels', async () => {
    const abort = new AbortController()
    setTimeout(() => abort.abort('SIGTERM'), 700)
    const outcome = await run({ command: ['sleep', '60'], signal: abort.signal })
    expect(outcome).toMatchObject({ cause: 'cancelled', cancelledBy: 'SIGTERM' })
    expect(await containers(here())).toBe('')
  })

  test('leaves nothing when the caller has cancelled already', async () => {
    const outcome = await run({ command: ['sleep', '60'], signal: AbortSignal.abort('SIGINT') })
    expect(outcome).toMatchObject({ cause: 'cancelled', cancelledBy: 'SIGINT' })
    expect(await containers(here())).toBe('')
  })

  test('passes stdin through, binary safe, with its end', async () => {
    const bytes = Buffer.from([0, 10, 13, 255, 0, 1])
    const outcome = await run({ command: ['sh', '-c', 'cat; echo end >&2'], stdin: bytes })
    expect(Buffer.from(outcome.stdout.head).equals(bytes)).toBe(true)
    expect(text(outcome.stderr)).toBe('end\n')
  })

  test('has an empty stdin when there is none', async () => {
    expect(await run({ command: ['cat'] })).toMatchObject({ cause: 'exit', exitCode: 0 })
  })

  test('keeps head and tail of a flood', async () => {
    const outcome = await run({ command: ['sh', '-c', 'yes | head -c 20000000; echo last'], outputCap: 1000 })
    expect(outcome.stdout.bytes).toBe(20_000_005)
    expect(text(outcome.stdout)).toHaveLength(1000)
    expect(text(outcome.stdout).endsWith('last\n')).toBe(true)
  })

  test('is no root, has no capabilities, no new privileges, a filter, a read-only root and no network', async () => {
    const script =
      'id -u; grep -E "^(Cap|NoNewPrivs|Seccomp:)" /proc/self/status; touch /x; ls /sys/class/net; ls /dev/shm'
    const outcome = await run({ command: ['sh', '-c', script] })
    expect(text(outcome.stdout)).toMatch(/^65534\n/)
    expect(text(outcome.stdout).match(/Cap\w+:\t0000000000000000/g)).toHaveLength(5)
    expect(text(outcome.stdout)).toContain('NoNewPrivs:\t1\nSeccomp:\t2\n')
    expect(text(outcome.stdout)).toMatch(/\nlo\n$/)
    expect(text(outcome.stderr)).toContain('touch: /x: Read-only file system')
  })

  test('has no network: a peer that another container reaches is out of its reach', async () => {
    const { client } = here().docker
    const network = `llm-do-test-${process.pid}`
    await client('network', 'create', '--internal', network)
    const serve = ['run', '--detach', '--network', network, BUSYBOX_IMAGE, 'httpd', '-f', '-h', '/bin']
    const peer = await client(...serve)
    try {
      const format = '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}'
      const address = await client('container', 'inspect', '--format', format, peer)
      const call = `wget -q -O - http://${address}/not-executable`
      // The negative control: in the peer's network the call is answered, as soon as the peer listens.
      const plain = ['run', '--rm', '--network', network, BUSYBOX_IMAGE, 'sh', '-c']
      expect(await client(...plain, `until ${call}; do sleep 0.1; done; grep -c : /proc/net/dev`)).toBe('plain\n2')
      const outcome = await run({ command: ['sh', '-c', `${call}; grep -c : /proc/net/dev`] })
      expect(text(outcome.stdout)).toBe('1\n')
      expect(text(outcome.stderr)).toContain('Network is unreachable')
    } finally {
      await client('rm', '--force', peer)
      await client('network', 'rm', network)
    }
  })

  test('filters system calls by our profile, which allows less than docker’s', async () => {
    const command = ['sh', '-c', 'unshare -U true; echo $?; chmod 4755 /tmp; echo $?']
    const filtered = await run({ command })
    expect(text(filtered.stdout)).toBe('1\n1\n')
    const open = await run({ command, plan: { seccomp: { profile: 'off', arch: 'x64', filter: '' } } })
    // The negative control: without the filter the same kernel and user may do it.
    expect(text(open.stdout)).toBe('0\n0\n')
  })

  test('starts with the image’s start program left out', async () => {
    const outcome = await run({ command: ['echo', 'hello'], plan: { image: ENVIRONMENT_IMAGE } })
    expect(text(outcome.stdout)).toBe('hello\n')
  })

  test('takes its variables exactly, without any reaching the client or its argv', async () => {
    const commandEnv = {
      HOME: '/x',
      PATH: '/bin',
      LD_PRELOAD: '/no.so',
      JSON: '{"a": "b c"}',
      TEXT: ' a\n#b=c\n',
      TAIL: 'x\r',
    }
    const outcome = await run({ command: ['env', '-0'], run: { commandEnv } })
    const seen = Object.fromEntries(
      text(outcome.stdout)
        .split('\0')
        .filter(Boolean)
        .map((entry) => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)]),
    )
    expect(seen).toEqual({ ...commandEnv, HOSTNAME: 'sandbox' })
  })

  test('gets no proxy from the client’s configuration, which may hold a password', async () => {
    const directory = await temporaryDirectory()
    const proxies = { default: { httpProxy: 'http://user:s3cret@proxy.example' } }
    await writeFile(join(directory, 'config.json'), JSON.stringify({ proxies }))
    const { docker, fact } = here()
    const inputs = dockerInputs(fact, { ...docker.env, DOCKER_CONFIG: directory })
    const outcome = await run({ command: ['env'], run: { docker: inputs } })
    expect(text(outcome.stdout)).not.toContain('s3cret')
    // The negative control: the plain client does pass it on.
    const env = await docker.client('--config', directory, 'run', '--rm', '--network', 'none', BUSYBOX_IMAGE, 'env')
    expect(env).toContain('s3cret')
  })

  test('sees zones on paths with a colon, a comma, a quote, a space and a line break', async () => {
    const source = join(await ownedDirectory(), 'a:b, "c"\nd e')
    await mkdir(source)
    await writeFile(join(source, 'file'), 'found')
    const zones = [observedZone({ source, target: '/in' })]
    const outcome = await run({ command: ['sh', '-c', 'cat /in/file; touch /in/new'], plan: { zones } })
    expect(text(outcome.stdout)).toBe('found')
    expect(text(outcome.stderr)).toContain('Read-only file system')
    expect(await readdir(source)).toEqual(['file'])
  })

  test('writes to a rw zone as its owner, and its scratch directories belong to it', async () => {
    const source = await ownedDirectory()
    const zones = [observedZone({ source, target: '/out', mode: 'rw' })]
    const outcome = await run({
      command: ['sh', '-c', 'echo x > /out/f && echo y > /home/sandbox/f && echo z > /tmp/f'],
      plan: { zones },
    })
    expect(text(outcome.stderr)).toBe('')
    expect((await lstat(join(source, 'f'))).uid).toBe(OWNER)
  })

  test('refuses a protected path that is a symbolic link', async () => {
    const source = await ownedDirectory()
    await symlink('/etc', join(source, '.vscode'))
    const zones = [observedZone({ source, target: '/w', mode: 'rw', protect: ['.vscode'] })]
    await expect(run({ command: ['true'], plan: { zones } })).rejects.toMatchObject({ code: 'ZONE_INVALID' })
  })

  test.each<readonly [string, Partial<Plan>, string, RegExp, RegExp]>([
    [
      'an image that is not here',
      { image: 'nosuch:1' },
      'SETUP_FAILED',
      /nosuch:1 is not on this machine/,
      /docker pull nosuch:1/,
    ],
    ['a word that is no image', { image: 'NOT AN IMAGE' }, 'POLICY_INVALID', /expected NAME\[:TAG\]/, /--image/],
    ['an image with a volume', { image: VOLUME_IMAGE }, 'ZONE_INVALID', /declares \/data as volumes/, /--tmpfs \/data/],
    [
      'a zone whose source is gone',
      { zones: [observedZone({ source: '/nonexistent/x', target: '/x' })] },
      'ZONE_INVALID',
      /\/nonexistent\/x has changed/,
      /run again/,
    ],
  ])('refuses %s, with the fix, and leaves nothing', async (_what, plan, code, message, hint) => {
    const error = (await run({ command: ['true'], plan }).catch((thrown: unknown) => thrown)) as SandboxError
    expect(error).toMatchObject({ code, message: expect.stringMatching(message), hint: expect.stringMatching(hint) })
    expect(await containers(here())).toBe('')
    expect(await here().docker.client('volume', 'ls', '--quiet')).toBe('')
  })

  test('says that the daemon is down', async () => {
    const { docker, fact } = here()
    const inputs = dockerInputs(fact, { ...docker.env, DOCKER_HOST: 'unix:///nonexistent/socket' })
    await expect(run({ command: ['true'], run: { docker: inputs } })).rejects.toMatchObject({
      code: 'NO_BACKEND',
      message: expect.stringMatching(/does not answer/),
    })
    const observed = await observeDocker({
      env: { ...docker.env, DOCKER_HOST: 'unix:///nonexistent/socket' },
      notBelow: [],
    })
    expect(observed?.server).toMatchObject({
      ok: false,
      message: expect.stringMatching(/Cannot connect|failed to connect/),
    })
  })

  test('is removed when its runner is killed, and what it made of protected names until then is set aside', async () => {
    const source = await ownedDirectory()
    const { docker, fact } = here()
    const zones = [observedZone({ source, target: '/w', mode: 'rw', protect: ['.mcp.json'] })]
    const plan = dockerPlan({ image: BUSYBOX_IMAGE, workdir: '/', zones })
    const program = await bundle(join(import.meta.dirname, '../../programs/run-docker.ts'), await temporaryDirectory())
    const [init, guard] = ['container-init', 'guard'].map((name) => join(nativeDirectory(), name))
    const runsDirectory = join(await temporaryDirectory(), 'runs')
    // The container goes on until it has made the name: it is removed too late.
    const client = join(await temporaryDirectory(), 'docker')
    const late = `touch ${source}/killed; until [ -e ${source}/.mcp.json ]; do sleep 0.05; done`
    await writeFile(client, `#!/bin/sh\n[ "$1" != rm ] || { ${late}; }\nexec ${fact.path} "$@"\n`, { mode: 0o755 })
    const script = 'touch /w/started; until [ -e /w/killed ]; do sleep 0.05; done; touch /w/.mcp.json; sleep 600'
    const inputs = { plan, fact: { ...fact, path: client }, env: docker.env, init, guard, runsDirectory }
    const words = JSON.stringify({ ...inputs, command: ['sh', '-c', script] })
    const runner = spawn(process.execPath, [program, words], { stdio: 'ignore' })
    await until(async () => (await readdir(source)).includes('started'))
    runner.kill('SIGKILL')
    const aside = new RegExp(`^\\.mcp\\.json\\.set-aside\\.killed${runner.pid}$`)
    await until(async () => (await readdir(source)).some((name) => aside.test(name)))
    expect(await containers(here())).toBe('')
    expect((await readdir(source)).sort()).toEqual([expect.stringMatching(aside), 'killed', 'started'])
    expect(await readdir(join(runsDirectory, '../containers'))).toEqual([])
  })

  test('whose runner is gone is swept away by the next run; that of a live one is not', async () => {
    const { docker, fact } = here()
    const inputs = dockerInputs(fact, docker.env)
    const dead = `${inputs.runner.slice(0, inputs.runner.lastIndexOf('/'))}/999999999:1`
    const start = (runner: string) =>
      docker.client(
        'run',
        '--detach',
        '--network',
        'none',
        '--label',
        'llm-do=run',
        '--label',
        `llm-do.runner=${runner}`,
        BUSYBOX_IMAGE,
        'sleep',
        '600',
      )
    const [gone, alive] = [await start(dead), await start(inputs.runner)]
    const runsDirectory = join(await temporaryDirectory(), 'runs')
    expect(await sweep(inputs, { now: Date.now(), runsDirectory })).toBe(1)
    const left = await docker.client('ps', '--all', '--quiet', '--no-trunc')
    expect(left).toBe(alive)
    expect(left).not.toContain(gone)
    await docker.client('rm', '--force', alive)
  })

  describe('of a session', () => {
    const session = async () => ({ dockerReuse: 'session' as const, hash: `s${runIds.next().value}` })

    test('serves the runs of one plan and says what that costs', async () => {
      const plan = await session()
      const runsDirectory = join(await temporaryDirectory(), 'runs')
      const first = await run({ command: ['sh', '-c', 'echo kept > /tmp/f; exit 3'], plan, run: { runsDirectory } })
      const second = await run({ command: ['cat', '/tmp/f'], plan, run: { runsDirectory } })
      expect(first).toMatchObject({ cause: 'exit', exitCode: 3 })
      expect(text(second.stdout)).toBe('kept\n')
      expect(second.warnings.join()).toContain('this container served earlier runs')
      expect((await containers(here())).split('\n')).toHaveLength(1)
      expect(await run({ command: ['nosuch'], plan, run: { runsDirectory } })).toMatchObject({
        cause: 'exec',
        failure: { errno: 'ENOENT' },
      })
      await sweep(dockerInputs(here().fact, here().docker.env), { now: Date.now(), runsDirectory, endsSessions: true })
      expect(await containers(here())).toBe('')
    })

    test('makes files by the mask of the caller of each run', async () => {
      const plan = await session()
      const runsDirectory = join(await temporaryDirectory(), 'runs')
      const before = process.umask()
      try {
        for (const mask of ['0077', '0002']) {
          process.umask(mask)
          const { stdout } = await run({ command: ['sh', '-c', 'umask'], plan, run: { runsDirectory } })
          expect(text(stdout)).toBe(`${mask}\n`)
        }
      } finally {
        process.umask(before)
      }
      await sweep(dockerInputs(here().fact, here().docker.env), { now: Date.now(), runsDirectory, endsSessions: true })
    })

    test('is told of each end exactly, also of the second one in the same container', async () => {
      const plan = { ...(await session()), limits: { memory: { max: 33_554_432, by: 'docker' } } } as const
      const runsDirectory = join(await temporaryDirectory(), 'runs')
      const inside = (script: string) => run({ command: ['sh', '-c', script], plan, run: { runsDirectory } })
      expect(await inside('kill -9 $$')).toMatchObject({ cause: 'exit', exitCode: null, signal: 'SIGKILL' })
      const first = await containers(here())
      const used = await inside('exit 137')
      expect(used).toMatchObject({ cause: 'exit', exitCode: 137, signal: null })
      expect(used.usage.peakMemory).toBeGreaterThan(0)
      expect(await containers(here())).toBe(first)
      const eaten = await inside('exec dd if=/dev/zero of=/dev/null bs=200M count=1')
      expect(eaten).toMatchObject({ cause: 'memory', signal: 'SIGKILL' })
      // One that was killed before does not make the next one look so.
      expect(await inside('kill -9 $$')).toMatchObject({ cause: 'exit', signal: 'SIGKILL' })
      await sweep(dockerInputs(here().fact, here().docker.env), { now: Date.now(), runsDirectory, endsSessions: true })
    })

    test('whose command ends our init has lost its end, and says so', async () => {
      const plan = { ...(await session()), limits: { timeoutMs: 20_000 } }
      const runsDirectory = join(await temporaryDirectory(), 'runs')
      const lost = await run({ command: ['sh', '-c', 'kill -9 $PPID; sleep 600'], plan, run: { runsDirectory } })
      expect(lost).toMatchObject({ cause: 'lost', exitCode: null, signal: null })
      // What it left behind is gone with the container.
      expect(await containers(here())).toBe('')
      const forged = ['sh', '-c', 'kill -9 $PPID; exit 0']
      expect(await run({ command: forged, plan, run: { runsDirectory } })).toMatchObject({ cause: 'lost' })
      await sweep(dockerInputs(here().fact, here().docker.env), { now: Date.now(), runsDirectory, endsSessions: true })
    })

    test('ends with a run that leaves a process behind, or has to be stopped', async () => {
      const runsDirectory = join(await temporaryDirectory(), 'runs')
      await run({
        command: ['sh', '-c', 'setsid sleep 600 >/dev/null 2>&1 & exit 0'],
        plan: await session(),
        run: { runsDirectory },
      })
      expect(await containers(here())).toBe('')
      const plan = { ...(await session()), limits: { timeoutMs: 500 } }
      expect(await run({ command: ['sleep', '600'], plan, run: { runsDirectory } })).toMatchObject({
        cause: 'deadline',
      })
      expect(await containers(here())).toBe('')
      for (const left of ['sessions', 'containers']) expect(await readdir(join(runsDirectory, '..', left))).toEqual([])
    })

    test('that has ended by itself is swept away with its directory, but not from under a run', async () => {
      const plan = await session()
      const runsDirectory = join(await temporaryDirectory(), 'runs')
      const left = (kind: string) => readdir(join(runsDirectory, '..', kind))
      const sweepLater = () =>
        sweep(dockerInputs(here().fact, here().docker.env), { now: Date.now() + 2 * 3_600_000, runsDirectory })
      await run({ command: ['true'], plan, run: { runsDirectory } })
      expect(await sweepLater()).toBe(0) // It goes on.
      expect(await left('containers')).toHaveLength(1)
      const id = await containers(here())
      const name = (await here().docker.client('inspect', '--format', '{{.Name}}', id)).slice(1)
      await here().docker.client('kill', id)
      const held = await takeSession(runsDirectory, name)
      expect([await sweepLater(), await left('containers')]).toEqual([0, [expect.any(String)]])
      held?.release()
      expect([await sweepLater(), await left('containers'), await left('sessions')]).toEqual([1, [], []])
      expect(await containers(here())).toBe('')
    })

    test('protects paths in every run, also after the host has replaced what stood there', async () => {
      const source = await ownedDirectory()
      await writeFile(join(source, '.claude'), 'original')
      await chown(join(source, '.claude'), OWNER, OWNER)
      const zones = [observedZone({ source, target: '/w', mode: 'rw', protect: ['.mcp.json', '.claude'] })]
      const plan = { ...(await session()), zones, limits: { timeoutMs: 20_000 } }
      const runsDirectory = join(await temporaryDirectory(), 'runs')
      const inside = (script: string) => run({ command: ['sh', '-c', script], plan, run: { runsDirectory } })
      for (const _run of [1, 2]) {
        expect(await inside('echo x > /w/.claude; mv /w/.claude /w/c; :')).toMatchObject({ cause: 'exit' })
        expect(await readdir(source)).toEqual(['.claude'])
        expect(await readFile(join(source, '.claude'), 'utf8')).toBe('original')
        await writeFile(join(source, 'new'), 'original')
        await chown(join(source, 'new'), OWNER, OWNER)
        await rename(join(source, 'new'), join(source, '.claude'))
      }
      const made = await inside('echo x > /w/.mcp.json; sleep 600')
      expect(made).toMatchObject({ cause: 'protected', guarded: { attempts: { count: 1 } } })
      expect((await readdir(source)).sort()).toEqual(['.claude', expect.stringMatching(/^\.mcp\.json\.set-aside\./)])
      expect(await inside('exit 4')).toMatchObject({ cause: 'exit', exitCode: 4 })
      await sweep(dockerInputs(here().fact, here().docker.env), { now: Date.now(), runsDirectory, endsSessions: true })
    })

    test('goes on while what it protects is in its place', async () => {
      const source = await ownedDirectory()
      await mkdir(join(source, '.claude'))
      const zones = [observedZone({ source, target: '/w', mode: 'rw', protect: ['.claude'] })]
      const plan = { ...(await session()), zones }
      const runsDirectory = join(await temporaryDirectory(), 'runs')
      await run({ command: ['sh', '-c', 'echo kept > /tmp/f'], plan, run: { runsDirectory } })
      expect(text((await run({ command: ['cat', '/tmp/f'], plan, run: { runsDirectory } })).stdout)).toBe('kept\n')
      await sweep(dockerInputs(here().fact, here().docker.env), { now: Date.now(), runsDirectory, endsSessions: true })
    })

    test('is not ended while a run is inside', async () => {
      const source = await ownedDirectory()
      const zones = [observedZone({ source, target: '/w', mode: 'rw' })]
      const plan = { ...(await session()), zones, limits: {} }
      const runsDirectory = join(await temporaryDirectory(), 'runs')
      const prune = (runsDirectory: string) =>
        sweep(dockerInputs(here().fact, here().docker.env), { now: Date.now(), runsDirectory, endsSessions: true })
      const script = 'touch /w/in; until [ -e /w/out ]; do sleep 0.1; done; exit 6'
      const running = run({ command: ['sh', '-c', script], plan, run: { runsDirectory } })
      await until(async () => (await readdir(source)).includes('in'))
      expect(await prune(runsDirectory)).toBe(0)
      // Also by one that knows another directory, such as that of another login.
      expect(await prune(join(await temporaryDirectory(), 'runs'))).toBe(0)
      await writeFile(join(source, 'out'), '')
      expect(await running).toMatchObject({ cause: 'exit', exitCode: 6 })
      expect(await prune(runsDirectory)).toBe(1)
      expect(await containers(here())).toBe('')
      for (const left of ['sessions', 'containers']) expect(await readdir(join(runsDirectory, '..', left))).toEqual([])
    })

    test('is for one run at a time; another one gets a container of its own', async () => {
      const plan = await session()
      const runsDirectory = join(await temporaryDirectory(), 'runs')
      const both = await Promise.all(
        ['1', '2'].map((word) =>
          run({ command: ['sh', '-c', `echo ${word} >> /tmp/f; sleep 0.5; cat /tmp/f`], plan, run: { runsDirectory } }),
        ),
      )
      expect(both.map(({ stdout }) => text(stdout)).sort()).toEqual(['1\n', '2\n'])
      await sweep(dockerInputs(here().fact, here().docker.env), { now: Date.now(), runsDirectory, endsSessions: true })
    })
  })
})

describeWith(['docker', 'podman'], 'a podman container', () => {
  const here = engine(podman)
  const run = (request: RunRequest) => runIn(here(), request)

  test('is reported with what podman can hold', () => {
    expect(here().fact).toMatchObject({ program: 'podman', server: { ok: true }, rootless: false })
  })

  test.each([0, 3, 125, 127])('gives the exit code %i of the command', async (code) => {
    expect(await run({ command: ['sh', '-c', `exit ${code}`] })).toMatchObject({ cause: 'exit', exitCode: code })
    expect(await containers(here())).toBe('')
  })

  test('tells a missing program from an exit code', async () => {
    expect(await run({ command: ['nosuch'] })).toMatchObject({ cause: 'exec', failure: { errno: 'ENOENT' } })
  })

  test('begins in an empty directory where no zone shows the workspace', async () => {
    const outcome = await run({ command: ['sh', '-c', 'pwd; ls -A; touch made'], plan: { workdir: '/workspace' } })
    expect(text(outcome.stdout)).toBe('/workspace\n')
    expect(text(outcome.stderr)).toContain('Read-only file system')
  })

  test('tells an end by a signal from the exit code of that number, and what was used', async () => {
    const outcome = await run({ command: ['sh', '-c', 'kill -9 $$'] })
    expect(outcome).toMatchObject({ cause: 'exit', exitCode: null, signal: 'SIGKILL' })
    expect(outcome.usage.peakMemory).toBeGreaterThan(0)
  })

  test('holds the same walls', async () => {
    const source = await ownedDirectory()
    await writeFile(join(source, '.mcp.json'), 'kept', { mode: 0o666 })
    await chmod(join(source, '.mcp.json'), 0o666)
    const zones = [observedZone({ source, target: '/out', mode: 'rw', protect: ['.mcp.json'] })]
    const script =
      'id -u; grep -E "^(CapEff|NoNewPrivs|Seccomp:)" /proc/self/status; echo x > /out/f; echo x > /out/.mcp.json; touch /x; echo x > /tmp/f; echo x > /home/sandbox/f; ls /sys/class/net'
    const outcome = await run({
      command: ['sh', '-c', script],
      plan: { zones },
      run: { commandEnv: { WORDS: '"quoted" \\ \'text\'' } },
    })
    expect(text(outcome.stdout)).toBe('1000\nCapEff:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\nlo\n')
    expect((await readdir(source)).sort()).toEqual(['.mcp.json', 'f'])
    expect(await readFile(join(source, '.mcp.json'), 'utf8')).toBe('kept')
    expect(await readFile(join(source, 'f'), 'utf8')).toBe('x\n')
  })

  test('is killed at the deadline', async () => {
    const outcome = await run({ command: ['sleep', '60'], plan: { limits: { timeoutMs: 500 } } })
    expect(outcome).toMatchObject({ cause: 'deadline' })
    expect(await containers(here())).toBe('')
  })
})

/** Waits for what must come; the test's own time limit ends what never does. */
async function until(comes: () => Promise<boolean>): Promise<void> {
  while (!(await comes())) await sleep(50)
}
