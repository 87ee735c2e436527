/**
 * Protected paths of containers, attacked from inside and by the owner of a zone while root makes the container. Each attack has its
 * control: the same without the wall.
 */
import { spawn } from 'node:child_process'
import { mkdir, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { dockerInputs } from '../../src/backend/docker-inputs.ts'
import type { Outcome } from '../../src/supervisor/outcome.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { BUSYBOX_IMAGE, startDocker, startPodman } from '../support/docker.ts'
import { describeWith } from '../support/needs.ts'
import { containers, engine, OWNER, ownedDirectory, runIn, seenZone, text, type Wish } from './docker-runs.ts'

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
      const run = (wish: Wish) => runIn(here(), wish)

      test('stay where they are with each directory on the way, which stays writable', async () => {
        const source = await repository()
        const zones = [seenZone({ source, target: '/w', mode: 'rw', protect: PROTECT })]
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

describeWith(['docker', 'root'], 'a container', () => {
  const here = engine(startDocker)
  const run = (wish: Wish) => runIn(here(), wish)

  test('is refused when its zone is another directory than was planned', async () => {
    const source = await ownedDirectory()
    const zones = [seenZone({ source, target: '/w' })]
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
      const zones = [seenZone({ source, target: '/w' })]
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
    const zones = [seenZone({ source, target: '/w' })]
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
    const zones = [seenZone({ source, target: '/w', mode: 'rw', protect: PROTECT })]
    const { init = changes.init, ...docker } = { ...dockerInputs(here().fact, here().docker.env), ...changes }
    const inputs = init === undefined ? docker : { ...docker, init }
    await expect(run({ command: ['true'], plan: { zones }, run: { docker: inputs } })).rejects.toMatchObject({
      code: 'SETUP_FAILED',
      message: expect.stringMatching(/is refused: the daemon cannot show container-init/),
    })
    expect(await containers(here())).toBe('')
  })
})

/** While it goes on, the owner of a zone exchanges two names in it. */
async function whileExchanged<T>(names: readonly [string, string], attempt: () => Promise<T>): Promise<T> {
  const program = join(await temporaryDirectory({ mode: 0o755 }), 'exchange')
  await execa('gcc', ['-O2', '-o', program, join(import.meta.dirname, '../programs/exchange.c')])
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

/** What only root can reach, and a link to it in the zone of somebody else. */
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

    test('gets nothing that the link leads to: the run is refused, or sees what was planned', async () => {
      const source = await repository()
      await secretBehind(join(source, 'link'))
      const zones = [seenZone({ source, target: '/w', mode: 'rw', protect: ['.git/config'] })]
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
        const zones = [seenZone({ source, target: '/w', mode: 'rw', protect: ['.git/config'] })]
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

    test('got it when the daemon was told the paths and nobody looked', async () => {
      const source = await repository()
      await secretBehind(join(source, 'link'))
      const mounts = ['', '/.git'].flatMap((path) => ['--mount', `type=bind,source=${source}${path},target=/w${path}`])
      const plain = ['run', '--rm', '--network', 'none', '--user', String(OWNER), ...mounts, BUSYBOX_IMAGE]
      const got = await whileExchanged([join(source, '.git'), join(source, 'link')], async () => {
        for (let attempt = 0; attempt < RACES * 4; attempt += 1) {
          const said = await here()
            .docker.client(...plain, 'sh', '-c', `${script}; true`)
            .catch(() => '')
          if (said.includes('TOPSECRET')) return attempt
        }
        return undefined
      })
      expect(got).toBeDefined()
    })
  },
)

/** Runs; each takes most of a second, and an exchange a microsecond, so that about every second one meets the link. */
const RACES = 12

const shownBy = (outcome: Outcome): string =>
  [outcome.cause, outcome.failure?.path ?? '', text(outcome.stdout)].filter(Boolean).join(' ')
