/**
 * A command with a writable zone cannot change what decides the next run: each row is one name of a deciding file, with what a
 * command would do to it. The control does the same from outside, and the next run obeys.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { callers, checkoutFor, currentUser, PLAIN_ID, type User } from '../support/users.ts'

const USERS = callers()
const ENGINES = ['unshare', 'bwrap'] as const

interface Scene {
  readonly user: User
  readonly home: string
  readonly work: string
  /** Only a run that was widened can write here. */
  readonly canary: string
}

async function makeScene(user: User): Promise<Scene> {
  const base = await temporaryDirectory()
  const scene = { user, home: join(base, 'home'), work: join(base, 'home/work'), canary: join(base, 'canary') }
  for (const directory of [scene.home, scene.work, scene.canary]) mkdirSync(directory)
  return scene
}

/** Everything belongs to the caller. */
function give({ user, home }: Scene): void {
  const base = join(home, '..')
  if (user !== 'plain' || currentUser() !== 'root') return
  execFileSync('chown', ['-hR', `${PLAIN_ID}:${PLAIN_ID}`, base])
}

/** A policy that shows the canary for writing. */
const wide = ({ canary }: Scene): string =>
  `sandbox: { zones: [{ name: out, hostPath: ${canary}, target: /out, mode: rw }] }\n`

interface Row {
  readonly title: string
  /** What is there before. */
  readonly prepare: (scene: Scene) => void
  readonly words: (scene: Scene) => readonly string[]
  /** Shell text that replaces the deciding file; `$ROOT` is where the zone appears, `$WIDE` holds a wide policy. */
  readonly plant: string
  readonly next: (scene: Scene) => readonly string[]
  readonly refusal: string
}

const home = (scene: Scene): readonly string[] => ['--rw', `${scene.home}:/zone`]
const workspace = (): readonly string[] => ['--rw', '.:/zone']

const ROWS: readonly Row[] = [
  {
    title: 'a profile that is reached through a link in the zone',
    prepare: (scene) => {
      writeFileSync(join(scene.home, 'p.yaml'), 'sandbox: { extends: default }\n')
      symlinkSync('../p.yaml', join(scene.work, 'p.yaml'))
    },
    words: () => ['--profile', './p.yaml', ...workspace()],
    plant: 'rm -f "$ROOT/p.yaml"; cp "$WIDE" "$ROOT/p.yaml"',
    next: () => ['--profile', './p.yaml'],
    refusal: 'p.yaml is a symbolic link to ../p.yaml',
  },
  {
    title: 'a profile below a linked directory in the zone',
    prepare: (scene) => {
      mkdirSync(join(scene.home, 'shared'))
      writeFileSync(join(scene.home, 'shared/p.yaml'), 'sandbox: { extends: default }\n')
      symlinkSync('../shared', join(scene.work, 'conf'))
    },
    words: () => ['--profile', './conf/p.yaml', ...workspace()],
    plant: 'rm -f "$ROOT/conf"; mkdir "$ROOT/conf"; cp "$WIDE" "$ROOT/conf/p.yaml"',
    next: () => ['--profile', './conf/p.yaml'],
    refusal: 'conf is a symbolic link to ../shared',
  },
  {
    title: 'a profile that another one extends through a link in the zone',
    prepare: (scene) => {
      writeFileSync(join(scene.home, 'base.yaml'), 'sandbox: {}\n')
      writeFileSync(join(scene.home, 'p.yaml'), 'sandbox: { extends: ./work/base.yaml }\n')
      symlinkSync('../base.yaml', join(scene.work, 'base.yaml'))
    },
    words: () => ['--profile', '../p.yaml', ...workspace()],
    plant: 'rm -f "$ROOT/base.yaml"; cp "$WIDE" "$ROOT/base.yaml"',
    next: () => ['--profile', '../p.yaml'],
    refusal: 'base.yaml is a symbolic link to ../base.yaml',
  },
  {
    title: 'the directory of profiles, reached through a link in the home',
    prepare: (scene) => {
      mkdirSync(join(scene.home, 'dotfiles/profiles'), { recursive: true })
      mkdirSync(join(scene.home, '.config'))
      symlinkSync('../dotfiles', join(scene.home, '.config/llm-do'))
    },
    words: home,
    plant:
      'rm -f "$ROOT/.config/llm-do"; mkdir -p "$ROOT/.config/llm-do/profiles"; cp "$WIDE" "$ROOT/.config/llm-do/profiles/default.yaml"',
    next: () => [],
    refusal: '.config/llm-do is a symbolic link to ../dotfiles',
  },
]

/** From outside, as any program of the host could. */
function plantOutside(row: Row, scene: Scene, root: string): void {
  execFileSync('sh', ['-ec', row.plant], {
    env: { ROOT: root, WIDE: join(scene.home, 'wide.yaml'), PATH: process.env['PATH'] },
  })
}

for (const user of USERS) {
  describe(`as ${user}`, () => {
    const run = (scene: Scene, words: readonly string[]) =>
      runCli(words, { as: scene.user, cwd: scene.work, env: { HOME: scene.home } })

    for (const row of ROWS) {
      const rootOf = (scene: Scene): string => (row.words === home ? scene.home : scene.work)

      test(`control: ${row.title}, replaced from outside, widens the next run`, async () => {
        const scene = await makeScene(user)
        row.prepare(scene)
        writeFileSync(join(scene.home, 'wide.yaml'), wide(scene))
        plantOutside(row, scene, rootOf(scene))
        give(scene)
        const next = await run(scene, [...row.next(scene), '--', 'touch', '/out/escape'])
        expect([next.status, next.stderr.toString()]).toEqual([0, expect.any(String)])
        expect(readdirSync(scene.canary)).toEqual(['escape'])
      })

      test.each(ENGINES)(`${row.title} cannot be replaced (%s)`, async (engine) => {
        const scene = await makeScene(user)
        row.prepare(scene)
        writeFileSync(join(scene.home, 'wide.yaml'), wide(scene))
        give(scene)
        const script = `ROOT=/zone; WIDE=/wide; ${row.plant}; touch /zone/ran`
        const planted = await run(scene, [
          '--engine',
          engine,
          ...row.words(scene),
          '--ro',
          `${join(scene.home, 'wide.yaml')}:/wide`,
          '--',
          'sh',
          '-c',
          script,
        ])
        expect(planted.stderr.toString()).toContain(row.refusal)
        expect([planted.status, existsSync(join(rootOf(scene), 'ran'))]).toEqual([125, false])
        await run(scene, [...row.next(scene), '--', 'touch', '/out/escape'])
        expect(readdirSync(scene.canary)).toEqual([])
      })
    }

    test('the cache, reached through a link in the home, cannot be planted', async () => {
      const scene = await makeScene(user)
      mkdirSync(join(scene.home, 'disk'))
      symlinkSync('disk', join(scene.home, '.cache'))
      give(scene)
      const script = 'rm /zone/.cache; mkdir -p -m 700 /zone/.cache/llm-do/launch'
      const planted = await run(scene, [...home(scene), '--', 'sh', '-c', script])
      expect(planted.stderr.toString()).toContain('.cache is a symbolic link to disk')
      expect([planted.status, existsSync(join(scene.home, '.cache/llm-do/launch'))]).toEqual([125, expect.any(Boolean)])
      execFileSync('test', ['-L', join(scene.home, '.cache')])
    })

    test.each<readonly [string, (file: string) => readonly string[], (file: string) => string]>([
      ['named by a flag', () => ['--seccomp', './filter.yaml'], () => ''],
      [
        'named by a profile',
        () => ['--profile', '../p.yaml'],
        (file) => `sandbox: { extends: default, seccomp: ${file} }\n`,
      ],
    ])('a filter file that is %s stays as it is', async (_, words, profile) => {
      const scene = await makeScene(user)
      const file = join(scene.work, 'filter.yaml')
      writeFileSync(file, 'extends: default\n')
      writeFileSync(join(scene.home, 'p.yaml'), profile(file))
      give(scene)
      const script = 'echo ran >ran; echo "extends: nested" >filter.yaml; mv filter.yaml x; rm filter.yaml'
      const planted = await run(scene, [...words(file), '--rw', '.', '--', 'sh', '-c', script])
      expect(planted.stderr.toString()).not.toContain('llm-do: error')
      expect([readFileSync(join(scene.work, 'ran'), 'utf8'), readFileSync(file, 'utf8')]).toEqual([
        'ran\n',
        'extends: default\n',
      ])
    })

    test('a zone at or below own state or the package is refused for writing', async () => {
      const scene = await makeScene(user)
      mkdirSync(join(scene.home, '.config/llm-do/profiles/below'), { recursive: true })
      give(scene)
      await run(scene, ['--', 'true'])
      const root = checkoutFor(user)
      const own = [
        ...['.cache/llm-do', '.cache/llm-do/launch', '.config/llm-do/profiles', '.config/llm-do/profiles/below'].map(
          (name) => join(scene.home, name),
        ),
        ...['', 'bin', 'workers', 'src/plan'].map((name) => join(root, name)),
        process.execPath,
      ]
      for (const directory of own) {
        const refused = await run(scene, ['--rw', `${directory}:/zone`, '--', 'true'])
        expect([directory, refused.status]).toEqual([directory, 125])
        expect(refused.stderr.toString()).toContain('decides the policy of the next run')
      }
    })

    test.each(['w.worker', 'w.md', 'workers/w.worker'])(
      'a worker is not shadowed by %s, which the search would find first',
      async (shadow) => {
        const scene = await makeScene(user)
        mkdirSync(join(scene.work, '.claude/agents'), { recursive: true })
        mkdirSync(join(scene.work, 'workers'))
        const worker = (name: string): string => `---\nname: ${name}\ndescription: d\ntools: Bash\n---\nDo.\n`
        writeFileSync(join(scene.work, '.claude/agents/w.md'), worker('w'))
        give(scene)
        const words = ['--worker', 'w', '--rw', '.', '--']
        const before = await run(scene, [...words, 'true'])
        expect([before.status, before.stderr.toString()]).toEqual([0, expect.any(String)])
        await run(scene, [...words, 'sh', '-c', `cp .claude/agents/w.md ${shadow}; mkdir ${shadow}; true`])
        expect(existsSync(join(scene.work, shadow))).toBe(false)
        const after = await run(scene, [...words, 'true'])
        expect(after.status).toBe(0)
      },
    )
  })
}
