/**
 * Protected paths of containers, attacked from inside and by the owner of a zone while root makes the container. Each attack has its
 * control: the same without the wall.
 */
import { spawn } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdirSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { chown, mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { startWatch } from '../../../src/backends/docker/guard.ts'
import { dockerInputs } from '../../../src/backends/docker/inputs.ts'
import type { Outcome } from '../../../src/backends/outcome.ts'
import type { PlannedZone } from '../../../src/plan/plan.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { BUSYBOX_IMAGE, startDocker, startPodman } from '../../support/docker.ts'
import { describeWith } from '../../support/needs.ts'
import { DOCKER_INPUTS, dockerPlan } from '../plans.ts'
import { containers, engine, OWNER, observedZone, ownedDirectory, type RunRequest, runIn, text } from './runs.ts'

/** A repository of the owner's, with a protected path at three depths. */
async function repository(): Promise<string> {
  const source = await ownedDirectory()
  await mkdir(join(source, '.git/hooks'), { recursive: true })
  await mkdir(join(source, '.config/fish/conf.d'), { recursive: true })
  await writeFile(join(source, '.git/config'), 'original\n')
  await writeFile(join(source, '.claude'), 'original\n')
  await execa('chown', ['--recursive', `${OWNER}:${OWNER}`, source])
  return source
}

/** podman asks for more than a root without privileges may have unless it is told. */
const LIMITS = ['nofile=1024:1024', 'nproc=4096:4096'].flatMap((limit) => ['--ulimit', limit])

const PROTECT = ['.claude', '.config/fish/conf.d', '.git/config', '.git/hooks']

/** Each parent and each path itself is renamed; then what was there is made anew. */
const RENAMES = [
  'cd /w',
  ...['.git', '.git/hooks', '.git/config', '.config', '.config/fish', '.config/fish/conf.d', '.claude'].map(
    (path) => `mv ${path} ${path}.moved 2>/dev/null && echo "moved ${path}"; rm -rf ${path}.moved`,
  ),
  'mkdir -p .git/hooks .config/fish/conf.d',
  'echo x > .git/hooks/pre-commit; echo x > .config/fish/conf.d/x.fish; echo x > .git/config',
  'echo fine > .git/index; echo fine > .config/other; echo fine > file',
].join('\n')

for (const [program, start] of [
  ['docker', startDocker],
  ['podman', startPodman],
] as const) {
  describeWith(
    program === 'docker' ? 'docker' : ['docker', 'podman'],
    `protected paths in a ${program} container`,
    () => {
      const here = engine(start)
      const run = (request: RunRequest) => runIn(here(), request)

      test('stay where they are with each directory on the way, which stays writable', async () => {
        const source = await repository()
        const zones = [observedZone({ source, target: '/w', mode: 'rw', protect: PROTECT })]
        const outcome = await run({ command: ['sh', '-c', RENAMES], plan: { zones } })
        expect(text(outcome.stdout)).toBe('')
        expect(await readFile(join(source, '.git/config'), 'utf8')).toBe('original\n')
        expect(await readFile(join(source, '.claude'), 'utf8')).toBe('original\n')
        expect(await readdir(join(source, '.git/hooks'))).toEqual([])
        expect(await readdir(join(source, '.config/fish/conf.d'))).toEqual([])
        expect((await readdir(source)).sort()).toEqual(['.claude', '.config', '.git', 'file'])
        expect((await readdir(join(source, '.git'))).sort()).toEqual(['config', 'hooks', 'index'])
      })

      test('could be moved away when only they themselves were mounts', async () => {
        const source = await repository()
        const words = PROTECT.flatMap((path) => [
          '--mount',
          `type=bind,source=${source}/${path},target=/w/${path},readonly`,
        ])
        const zone = ['--mount', `type=bind,source=${source},target=/w`]
        const plain = [
          'run',
          '--rm',
          '--network',
          'none',
          ...LIMITS,
          '--user',
          String(OWNER),
          ...zone,
          ...words,
          BUSYBOX_IMAGE,
        ]
        const moved = await here().docker.client(...plain, 'sh', '-c', `${RENAMES}; true`)
        expect(moved).toBe('moved .git\nmoved .config')
        expect(await readdir(join(source, '.git/hooks'))).toEqual(['pre-commit'])
      })
    },
  )
}

for (const [program, start] of [
  ['docker', startDocker],
  ['podman', startPodman],
] as const) {
  describeWith(
    program === 'docker' ? 'docker' : ['docker', 'podman'],
    `a protected name that does not exist, in a ${program} container,`,
    () => {
      const here = engine(start)
      const run = (request: RunRequest) => runIn(here(), request)
      const zone = (source: string, changes: Partial<PlannedZone> = {}) =>
        observedZone({
          source,
          target: '/w',
          mode: 'rw',
          protect: ['.config/fish', '.mcp.json'],
          git: { open: [] },
          ...changes,
        })

      test.each([
        ['a file', 'echo x > .mcp.json', '.mcp.json'],
        ['a directory on the way is made first', 'mkdir .config; sleep 0.1; mkdir .config/fish', '.config/fish'],
        ['a link', 'ln -s /etc .mcp.json', '.mcp.json'],
        ['a thing that was moved there', 'mkdir a; mv a .mcp.json', '.mcp.json'],
        ['a repository', 'mkdir .git; echo > .git/HEAD', '.git'],
        ['a repository further down', 'mkdir -p a/b/.git', 'a/b/.git'],
      ])('ends the run as soon as it is made: %s', async (_what, script, name) => {
        const source = await ownedDirectory()
        const limits = { timeoutMs: 30_000 }
        const outcome = await run({
          command: ['sh', '-c', `cd /w; ${script}; sleep 600`],
          plan: { zones: [zone(source)], limits },
        })
        const path = join(source, name)
        expect(outcome).toMatchObject({ cause: 'protected', guarded: { attempts: { first: [{ path, gone: false }] } } })
        expect(existsSync(path)).toBe(false)
        expect(await readdir(dirname(path))).toContain(outcome.guarded?.attempts.first[0]?.aside)
        expect(await containers(here())).toBe('')
      })

      test('is found at the end when the command was quicker', async () => {
        const source = await ownedDirectory()
        const outcome = await run({ command: ['sh', '-c', 'echo x > /w/.mcp.json'], plan: { zones: [zone(source)] } })
        expect(outcome.cause).toBe('protected')
        expect(await readdir(source)).toEqual([outcome.guarded?.attempts.first[0]?.aside])
      })

      test('stands nowhere: the host sees nothing of its protection', async () => {
        const source = await ownedDirectory()
        const outcome = await run({
          command: ['sh', '-c', 'ls -A /w; echo fine > /w/f'],
          plan: { zones: [zone(source)] },
        })
        expect([outcome.cause, text(outcome.stdout)]).toEqual(['exit', ''])
        expect(await readdir(source)).toEqual(['f'])
      })

      test('is made without protection, and by a run that is not watched', async () => {
        const source = await ownedDirectory()
        const { git: _git, ...open } = zone(source, { protect: [] })
        const command = ['sh', '-c', 'cd /w; echo x > .mcp.json; mkdir .git']
        expect(await run({ command, plan: { zones: [open] } })).toMatchObject({ cause: 'exit', exitCode: 0 })
        expect((await readdir(source)).sort()).toEqual(['.git', '.mcp.json'])
      })

      test('is refused when there is no guard to watch it', async () => {
        const source = await ownedDirectory()
        const { guard: _guard, ...docker } = dockerInputs(here().fact, here().docker.env)
        const end = run({ command: ['true'], plan: { zones: [zone(source)] }, run: { docker } })
        await expect(end).rejects.toMatchObject({ code: 'HELPER_MISSING' })
      })
    },
  )
}

describeWith(['docker', 'root'], 'a container', () => {
  const here = engine(startDocker)
  const run = (request: RunRequest) => runIn(here(), request)

  test('is refused when its zone is another directory than was planned', async () => {
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

  test('is refused when a file system below its read-only zone would be writable', async () => {
    const source = await ownedDirectory()
    const below = join(source, 'a b')
    await mkdir(below)
    await execa('mount', ['-t', 'tmpfs', '-o', 'mode=1777', 'none', below])
    try {
      const zones = [observedZone({ source, target: '/w' })]
      const script = 'echo x > "/w/a b/written"'
      const refused = await run({ command: ['sh', '-c', script], plan: { zones } })
      // A daemon whose read-only mounts are recursive holds it by itself.
      if (refused.cause === 'setup') expect(refused.failure).toMatchObject({ errno: 'EROFS', path: '/w/a b' })
      expect(await readdir(below)).toEqual([])
      const plain = ['run', '--rm', '--network', 'none', '--mount', `type=bind,source=${source},target=/w,readonly`]
      await here().docker.client(...plain, BUSYBOX_IMAGE, 'sh', '-c', `${script}; true`)
      const isRecursive = (await readdir(below)).length === 0
      expect(refused.cause).toBe(isRecursive ? 'exit' : 'setup')
    } finally {
      await execa('umount', [below])
    }
  })

  test('shows a scratch directory inside a read-only zone', async () => {
    const source = await ownedDirectory()
    await mkdir(join(source, 'scratch'))
    const zones = [observedZone({ source, target: '/w' })]
    const scratch = [{ target: '/w/scratch', size: 1 << 20, inodes: 100, mode: 0o1777 }]
    const outcome = await run({
      command: ['sh', '-c', 'echo x > /w/scratch/f && cat /w/scratch/f'],
      plan: { zones, scratch },
    })
    expect([outcome.cause, text(outcome.stdout)]).toEqual(['exit', 'x\n'])
  })

  test.each([
    ['a daemon that does not see our init', { init: '/nonexistent/init' }],
    ['a daemon on another machine', { init: undefined, remote: true }],
  ])('with protected paths is refused by %s', async (_what, changes) => {
    const source = await repository()
    const zones = [observedZone({ source, target: '/w', mode: 'rw', protect: PROTECT })]
    const { init = changes.init, ...docker } = { ...dockerInputs(here().fact, here().docker.env), ...changes }
    const inputs = init === undefined ? docker : { ...docker, init }
    await expect(run({ command: ['true'], plan: { zones }, run: { docker: inputs } })).rejects.toMatchObject({
      code: 'SETUP_FAILED',
      message: expect.stringMatching(/is refused: the daemon cannot show container-init/),
    })
    expect(await containers(here())).toBe('')
  })
})

describe('a guard that ends', () => {
  const watchBy = async (script: string, source: string) => {
    const guard = join(await temporaryDirectory(), 'guard')
    await writeFile(guard, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
    const zones = [observedZone({ source, target: '/w', mode: 'rw', protect: ['.mcp.json'] })]
    const docker = { ...DOCKER_INPUTS, guard }
    return startWatch({ plan: dockerPlan({ zones }), docker, name: 'none', runId: 'none', socket: undefined })
  }

  test('before it watches refuses the run', async () => {
    await expect(watchBy('exit 125', await temporaryDirectory())).rejects.toMatchObject({ code: 'ZONE_INVALID' })
  })

  test('while it watches is an alarm, and what the run did is lost', async () => {
    const source = await temporaryDirectory()
    const watch = await watchBy(
      `echo '{"watching":true}'; until [ -e ${source}/go ]; do sleep 0.05; done; kill -9 $$`,
      source,
    )
    await writeFile(join(source, 'go'), '')
    await watch.alarm
    expect(await watch.end()).toBe('lost')
  })
})

/** Runs; each takes most of a second, and an exchange a microsecond, so that about every second one meets the link. */
const RACES = 8
/** Milliseconds for all of them on a loaded machine. */
const RACES_MS = 120_000

/** While it goes on, the owner of a zone exchanges two names in it. */
async function whileExchanged<T>(names: readonly [string, string], attempt: () => Promise<T>): Promise<T> {
  const program = join(await temporaryDirectory({ mode: 0o755 }), 'exchange')
  await execa('gcc', ['-O2', '-o', program, join(import.meta.dirname, '../../programs/exchange.c')])
  const racer = spawn(program, [...names], { uid: OWNER, gid: OWNER, stdio: 'ignore' })
  try {
    return await attempt()
  } finally {
    racer.kill('SIGKILL')
    await new Promise(
      (resolve) => void ((racer.exitCode ?? racer.signalCode) ? resolve(0) : racer.once('exit', resolve)),
    )
  }
}

/** What only root can reach, and a link to it in the zone of another user. */
async function secretBehind(link: string): Promise<string> {
  const closed = await temporaryDirectory({ mode: 0o700 })
  await mkdir(join(closed, 'open'))
  await writeFile(join(closed, 'open/secret'), 'TOPSECRET\n')
  await symlink(join(closed, 'open'), link)
  return closed
}

describeWith(
  ['docker', 'root', 'gcc'],
  'the owner of a zone, who exchanges a directory for a link while root makes the container',
  () => {
    const here = engine(startDocker)
    const script = 'cat /w/.git/secret; ls -R /w'

    test('gets nothing that the link leads to: the run is refused, or sees what was planned', {
      timeout: RACES_MS,
    }, async () => {
      const source = await repository()
      await secretBehind(join(source, 'link'))
      const zones = [observedZone({ source, target: '/w', mode: 'rw', protect: ['.git/config'] })]
      const ends = await whileExchanged([join(source, '.git'), join(source, 'link')], async () => {
        const seen: string[] = []
        for (let attempt = 0; attempt < RACES; attempt += 1) {
          const end = runIn(here(), { command: ['sh', '-c', script], plan: { zones } })
          seen.push(await end.then(shownBy, (error: Error) => `refused: ${error.message}`))
        }
        return seen
      })
      expect(ends.filter((end) => end.includes('TOPSECRET'))).toEqual([])
      expect(ends).toHaveLength(RACES)
    })

    test.each([
      ['a link to it', 'mv .git away; mv link .git', '/w/.git', 'ESTALE'],
      ['another directory of the zone', 'mv .git away; mv other .git', '/w/.git', 'ESTALE'],
      [
        'itself in another place',
        'mv .git away; mkdir .git; touch .git/config; mv away .git/inner',
        '/w/.git',
        'ESTALE',
      ],
    ])(
      'is found out by what the container has, when the directory became %s after the look',
      async (_what, swap, path, errno) => {
        const source = await repository()
        await secretBehind(join(source, 'link'))
        await mkdir(join(source, 'other'))
        await writeFile(join(source, 'other/config'), '')
        await execa('chown', ['--recursive', '--no-dereference', `${OWNER}:${OWNER}`, source])
        const zones = [observedZone({ source, target: '/w', mode: 'rw', protect: ['.git/config'] })]
        const real = dockerInputs(here().fact, here().docker.env)
        const client = join(await temporaryDirectory(), 'docker')
        const script = `if [ "$1" = start ]; then (cd ${source}; ${swap}); fi; exec ${real.path} "$@"`
        await writeFile(client, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
        const docker = { ...real, path: client }
        const command = ['sh', '-c', 'touch /w/started; cat /w/.git/secret']
        const end = runIn(here(), { command, plan: { zones }, run: { docker } })
        const seen = await end.catch((error: Error) => error)
        // The daemon itself refuses some of them: a mount has nothing to stand on.
        if (!(seen instanceof Error)) expect(seen).toMatchObject({ cause: 'setup', failure: { path, errno } })
        expect(await readdir(source)).not.toContain('started')
      },
    )

    test('got it when the daemon was told the paths and nothing compared them', async () => {
      const source = await repository()
      await secretBehind(join(source, 'link'))
      const mounts = ['', '/.git'].flatMap((path) => ['--mount', `type=bind,source=${source}${path},target=/w${path}`])
      const { client } = here().docker
      const plain = ['create', '--rm', '--network', 'none', '--user', String(OWNER), ...mounts, BUSYBOX_IMAGE]
      const container = (await client(...plain, 'sh', '-c', `${script}; true`)).trim()
      // What the runs above have to hit by chance: the daemon follows the paths when the container starts.
      await execa('sh', ['-c', 'mv .git away && mv link .git'], { cwd: source })
      expect(await client('start', '--attach', container)).toContain('TOPSECRET')
    })
  },
)

describeWith(
  ['docker', 'root', 'gcc'],
  'the owner of a zone, who exchanges a protected name for a link to a file of root',
  () => {
    const here = engine(startDocker)
    const owned = async (victim: string) => {
      const { uid, mode } = await stat(victim)
      return { uid, mode: mode & 0o7777 }
    }
    const victimBehind = async (source: string) => {
      const victim = join(await temporaryDirectory({ mode: 0o755 }), 'victim')
      await writeFile(victim, 'secret', { mode: 0o600 })
      await symlink(victim, join(source, 'link'))
      return victim
    }

    test('gets nothing done to the file by a run of root, whose own file system calls all stay where they began', {
      timeout: RACES_MS,
    }, async () => {
      const source = await ownedDirectory()
      const victim = await victimBehind(source)
      await mkdir(join(source, '.vscode'))
      await chown(join(source, '.vscode'), OWNER, OWNER)
      const zones = [observedZone({ source, target: '/w', mode: 'rw', protect: ['.vscode', '.mcp.json'] })]
      await whileExchanged([join(source, '.vscode'), join(source, 'link')], async () => {
        for (let attempt = 0; attempt < RACES; attempt += 1)
          await runIn(here(), { command: ['sh', '-c', 'echo x >> /w/.vscode'], plan: { zones } }).catch(() => undefined)
      })
      expect(await owned(victim)).toEqual({ uid: 0, mode: 0o600 })
      expect(await readFile(victim, 'utf8')).toBe('secret')
    })

    test('has the file when root makes, gives away and closes the directory by its path, as placeholders were made', {
      timeout: RACES_MS,
    }, async () => {
      const source = await ownedDirectory()
      const victim = await victimBehind(source)
      const path = join(source, '.vscode')
      await whileExchanged([path, join(source, 'link')], async () => {
        for (let attempt = 0; attempt < 100_000 && statSync(victim).uid === 0; attempt += 1) {
          try {
            rmSync(path, { recursive: true, force: true })
            rmSync(join(source, 'link'), { recursive: true, force: true })
            symlinkSync(victim, join(source, 'link'))
            mkdirSync(path)
            chownSync(path, OWNER, OWNER)
            chmodSync(path, 0o1555)
          } catch {
            // Exchanged in between: the next attempt.
          }
        }
      })
      expect(await owned(victim)).toMatchObject({ uid: OWNER })
    })
  },
)

const shownBy = (outcome: Outcome): string =>
  [outcome.cause, outcome.failure?.path ?? '', text(outcome.stdout)].filter(Boolean).join(' ')
