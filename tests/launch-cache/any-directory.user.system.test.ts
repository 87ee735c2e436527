/**
 * A plan that serves every directory: of each kind of directory either the filled plan is what Node would write for it, word by word, or
 * the client does not take it.
 */
import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, linkSync, mkdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { execa } from 'execa'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { commandOf, readCommandLine } from '../../src/cli/exec-arguments.ts'
import { VERBS } from '../../src/contract.ts'
import { divisionOf, invocationOf } from '../../src/launch-cache/cache-key.ts'
import { flagLayer } from '../../src/policy/option-layer.ts'
import { type CachedPlan, guardedLaunch, makeCacheFor } from '../../src/run/cache-plan.ts'
import { prepareZones } from '../../src/run/make-zones.ts'
import { type ExecOptions, prepare } from '../../src/run/plan-run.ts'
import { newDirectory } from '../support/directory.ts'
import { driver } from '../support/driver.ts'
import { describeWith, unmetNeeds } from '../support/needs.ts'

const isRoot = process.getuid?.() === 0
const isFirst = unmetNeeds(['one-user']).length === 0
const ROOT = join(import.meta.dirname, '../..')

const site = { home: '', path: '', remove: async () => undefined as unknown }

/** Outside of the home and of what else decides about plans. */
const at = (...words: readonly string[]): string => join(site.path, ...words)
const homeAt = (...words: readonly string[]): string => join(site.home, ...words)

function made(path: string): string {
  mkdirSync(path, { recursive: true })
  return path
}

function linkOnce(path: string, to = 'real'): void {
  rmSync(path, { force: true })
  symlinkSync(to, path)
}

/** Checks that the files of `make` are in it. */
function withMade(directory: string, make: () => void): string {
  made(directory)
  make()
  return directory
}

/** Another name of the one socket there is. */
function socketIn(directory: string): string {
  rmSync(join(made(directory), 'socket'), { force: true })
  linkSync(at('any-socket'), join(directory, 'socket'))
  return directory
}

/** More than is looked at; the socket is in one of the first directories by name, and behind the most others as the disk has them. */
function crowded(directory: string): string {
  const names = Array.from({ length: 40 }, (_, at) => `d${at + 10}`)
  for (const name of names)
    for (let file = 0; file < 100; file++) writeFileSync(join(made(join(directory, name)), `${file}`), '')
  const order = spawnSync('ls', ['-U', directory], { encoding: 'utf8' }).stdout.split('\n')
  const [last = ''] = names.slice(0, 15).sort((a, b) => order.indexOf(b) - order.indexOf(a))
  socketIn(join(directory, last))
  return directory
}

beforeAll(async () => {
  const { path, remove } = await newDirectory()
  Object.assign(site, { path: made(join(path, 'work')), home: made(join(path, 'home')), remove })
  // A plan that saw them missing would be stale.
  for (const own of ['.config/llm-do/profiles/more', '.cache/llm-do/launch']) made(homeAt(own))
  const listen = `import socket,sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])`
  expect(spawnSync('python3', ['-c', listen, 'any-socket'], { cwd: site.path }).status).toBe(0)
  symlinkSync(site.home, at('named-home'))
  symlinkSync(made(at('led/bin')), at('named-tools'))
  symlinkSync(made(at('private/runtime')), at('named-runtime'))
})
afterAll(() => site.remove())

const environment = () => ({
  PATH: `${at('tools')}:/usr/bin:/bin:${at('named-tools')}`,
  HOME: at('named-home'),
  LANG: 'C.UTF-8',
  XDG_RUNTIME_DIR: at('named-runtime'),
})

function optionsFor(words: readonly string[], cwd: string): ExecOptions {
  const { given, ...line } = readCommandLine(words, true)
  const division = divisionOf(words, true)
  return {
    command: commandOf({ given, ...line }),
    layers: [flagLayer(given, cwd)],
    ...(typeof given['profile'] === 'string' ? { profile: given['profile'] } : {}),
    cwd,
    env: environment(),
    mode: 'inherit',
    ...(division === undefined ? {} : { invocation: invocationOf(division) }),
  }
}

/** @returns undefined where Node refuses the directory, or leaves nothing */
async function left(words: readonly string[], cwd: string): Promise<CachedPlan | undefined> {
  const options = optionsFor(words, cwd)
  makeCacheFor(options)
  const begunMs = Date.now()
  const prepared = await prepareZones(() => prepare(options)).catch(() => undefined)
  return prepared && guardedLaunch(prepared, begunMs)
}

/** The client's plan in a directory: the filled plan, or why it takes none. */
async function fill(bytes: Uint8Array, cwd: string, words: readonly string[]): Promise<Uint8Array | string> {
  const { exitCode, stdout } = await execa(driver('native/fill'), words, {
    cwd,
    input: bytes,
    encoding: 'buffer',
    reject: false,
    env: { ...environment(), ASAN_OPTIONS: 'detect_leaks=0' },
    extendEnv: false,
  })
  expect([0, 1, 2]).toContain(exitCode)
  return exitCode === 0 ? stdout : Buffer.from(stdout).toString().trimEnd()
}

/** Longer than what a plan was read from must be unchanged; milliseconds. */
const SETTLED_MS = 60

/** Guards of the whole, and conditions. */
const NOT_COMPARED = ['check', 'key', 'at', 'content', 'slots', 'apart', 'step', 'device', 'quiet']

function recordsIn(bytes: Uint8Array): readonly string[] {
  const words = Buffer.from(bytes).toString('latin1').split('\0')
  const records: string[] = []
  for (let place = 1; place < words.length - 2; ) {
    const verb = words[place] as keyof typeof VERBS
    const next = place + 1 + VERBS[verb]
    if (!NOT_COMPARED.includes(verb)) records.push(words.slice(place, next).join('\0'))
    place = next
  }
  return records
}

const POLICIES = {
  'a writable directory': (_: string) => ['--rw', '.'],
  'no zone': (_: string) => [],
  'a copy-on-write directory': (_: string) => ['--cow', '.'],
  'a zone of another directory': (directory: string) => ['--rw', `${directory}:/work`],
} as const

/** The caller's directory, and the client's view of the command line. */
const callFor = (policy: keyof typeof POLICIES, directory: string) =>
  policy === 'a zone of another directory'
    ? { cwd: made(at('stands/here')), named: [directory] }
    : { cwd: directory, named: [] }

interface Shape {
  readonly cwd: () => string
  readonly command?: string
  /** The client takes the plan; else why it does not. */
  readonly taken: true | RegExp
  readonly needs?: 'root' | 'user'
}

const SHAPES: Readonly<Record<string, Shape>> = {
  'an empty one': { cwd: () => made(at('empty')), taken: true },
  'a deep one': { cwd: () => made(at('a/b/c/d/e/f/g/h')), taken: true },
  'a repository': { cwd: () => dirname(made(at('repository/.git'))), taken: true },
  'below a repository': { cwd: () => withMade(at('above/src'), () => made(at('above/.git'))), taken: true },
  'below a repository, for git': {
    cwd: () => withMade(at('above/src'), () => made(at('above/.git'))),
    command: 'git',
    taken: /^git needs .*\/above\/\.git$/,
  },
  'a linked worktree': {
    cwd: () => withMade(at('linked'), () => writeFileSync(at('linked/.git'), 'gitdir: /x\n')),
    taken: /\/linked\/\.git is not a directory$/,
  },
  'below a linked worktree': { cwd: () => made(at('linked/src')), taken: /\/linked\/\.git is not a directory$/ },
  'with a virtual environment': {
    cwd: () => withMade(at('python'), () => writeFileSync(join(made(at('python/.venv')), 'pyvenv.cfg'), '')),
    taken: /^it has \.venv\/pyvenv\.cfg$/,
  },
  'with a directory that only looks like an environment': {
    cwd: () => dirname(made(at('unpython/.venv'))),
    taken: true,
  },
  'with directories that are protected': { cwd: () => dirname(made(at('settings/.vscode'))), taken: true },
  'with a protected name that is a link': {
    cwd: () => withMade(at('link'), () => linkOnce(at('link/.npmrc'))),
    taken: true,
  },
  'part of a protected name': { cwd: () => made(at('parts/.github')), taken: /^\.github begins the name/ },
  'part of a protected name of two words': { cwd: () => made(at('parts/.yarn')), taken: /^\.yarn begins the name/ },
  'of another user': {
    cwd: () => withMade(at('foreign'), () => chownSync(at('foreign'), 12_345, 12_345)),
    taken: true,
    needs: 'root',
  },
  'closed to others': { cwd: () => withMade(at('closed'), () => chmodSync(at('closed'), 0o700)), taken: true },
  'for everybody': { cwd: () => withMade(at('sticky'), () => chmodSync(at('sticky'), 0o1777)), taken: true },
  'with a blank in its name': { cwd: () => made(at('a name')), taken: true },
  'with letters of a language': { cwd: () => made(at('ü')), taken: true },
  'with a line end in its name': { cwd: () => made(at('two\nlines')), taken: true },
  'with a slot in its name': { cwd: () => made(at('\u0001p\u0001h')), taken: true },
  'with a control character': { cwd: () => made(at('\u001b[31m')), taken: true },
  'with a package of tools': {
    cwd: () => withMade(at('npm'), () => writeFileSync(at('npm/.npmrc'), '')),
    taken: true,
  },
  'with profiles': { cwd: () => dirname(made(at('own/profiles'))), taken: true },
  'below the home': { cwd: () => made(homeAt('project')), taken: true },
  'the home': { cwd: () => site.home, taken: / is in \// },
  'above the home': { cwd: () => dirname(site.home), taken: / is in \// },
  'where the profiles are': { cwd: () => made(homeAt('.config/llm-do/profiles/more')), taken: / is in .*llm-do/ },
  'in the cache': { cwd: () => made(homeAt('.cache/llm-do/launch')), taken: / is in \// },
  'next to the key': {
    cwd: () => made(isRoot ? '/run/llm-do/beside' : at('private/runtime/llm-do/beside')),
    taken: / is in \//,
  },
  'in the package': { cwd: () => join(ROOT, 'src'), taken: / is in \// },
  'in PATH': { cwd: () => made(at('tools/of')), taken: / is in .*\/tools$/ },
  'around a directory of PATH': { cwd: () => dirname(made(at('tools'))), taken: / is in \// },
  'around a directory that PATH has by a link': { cwd: () => dirname(made(at('led/bin'))), taken: / is in \// },
  'around the key, which has its name by a link': { cwd: () => at('private'), taken: / is in \//, needs: 'user' },
  'shared by all': { cwd: () => '/tmp', taken: / is in \// },
  'of the system': { cwd: () => '/usr/share/misc', taken: / is in \/usr/ },
  'of the kernel': { cwd: () => '/proc', taken: / is in \// },
  'the root': { cwd: () => '/', taken: / is in \// },
  'with a socket': { cwd: () => socketIn(at('socket')), taken: /^it has the socket or FIFO/ },
  'with a socket in a directory that is not the first on the disk': {
    cwd: () => crowded(at('crowded')),
    taken: /^it has the socket or FIFO/,
  },
  'with a FIFO further down': {
    cwd: () => withMade(at('fifo'), () => spawnSync('mkfifo', ['f'], { cwd: made(at('fifo/a/b')) })),
    taken: /^it has the socket or FIFO/,
  },
}

/** Cases that concern only a writable zone are tried with one alone. */
const OF_EVERY_POLICY = [
  'an empty one',
  'a repository',
  'with directories that are protected',
  'with a protected name that is a link',
  'part of a protected name',
  'the home',
  'around the key, which has its name by a link',
  'in the package',
  'shared by all',
  'with a socket',
]
/** Where the keeper of the keys, or who may look, is another one. Root has tried the others, where root runs the tests. */
const OF_EVERY_USER = ['an empty one', 'closed to others', 'the home', 'next to the key', 'in the cache']
const isTriedHere = (name: string, { needs }: Shape): boolean =>
  needs === undefined ? isFirst || OF_EVERY_USER.includes(name) : (needs === 'root') === isRoot
const isTried = (name: string, policy: keyof typeof POLICIES, shape: Shape): boolean =>
  (policy === 'a writable directory' || OF_EVERY_POLICY.includes(name)) && isTriedHere(name, shape)

describeWith('userns', 'the plan for every directory', () => {
  describe.each(Object.keys(POLICIES) as (keyof typeof POLICIES)[])('with %s', (policy) => {
    const plans = new Map<string, CachedPlan>()
    beforeAll(async () => {
      for (const command of ['true', 'true', 'git']) {
        // The first one of all makes directories that it has seen missing.
        const first = made(at('first/one'))
        const plan = await left([...POLICIES[policy](first), '--', command], callFor(policy, first).cwd)
        if (plan !== undefined) plans.set(command, plan)
      }
    })

    test.each(Object.entries(SHAPES).filter(([shape, one]) => isTried(shape, policy, one)))('%s', async (_, shape) => {
      const { cwd, command = 'true', taken } = shape
      const directory = cwd()
      const { cwd: stand, named } = callFor(policy, directory)
      const filled = await fill(plans.get(command)?.bytes ?? Buffer.of(), stand, [command, ...named])
      if (taken !== true) {
        expect(filled).toEqual(expect.stringMatching(taken))
        return
      }
      const alone = await left([...POLICIES[policy](directory), '--', command], stand)
      const own = alone?.own()
      expect(own).toBeDefined()
      // A plan for one directory has another pool than that of all.
      const isOfOnePool = alone?.isBlank === plans.get(command)?.isBlank
      const compared = (bytes: Uint8Array) =>
        recordsIn(bytes).filter((record) => isOfOnePool || !record.startsWith('pool\0'))
      expect(typeof filled === 'string' ? [filled] : compared(filled)).toEqual(compared(own?.bytes ?? Buffer.of()))
    })
  })
})

describeWith(['userns', 'one-user'], 'the plan for every directory', () => {
  describe.each(['a writable directory', 'a copy-on-write directory'] as const)('with %s', (policy) => {
    const plan = () => left([...POLICIES[policy]('.'), '--', 'true'], made(at('first/one')))
    const inMount = async (script: string) => {
      const directory = made(at('mount'))
      const { stdout } = await execa('unshare', ['-Urm', 'sh', '-c', script, driver('native/fill'), directory], {
        cwd: directory,
        input: (await plan())?.bytes ?? Buffer.of(),
        reject: false,
        env: { ASAN_OPTIONS: 'detect_leaks=0' },
      })
      return stdout
    }

    test('one whose path leads to a file system that was mounted since', async () => {
      const said = await inMount('mount -t tmpfs none "$1"; exec "$0" true')
      expect(said).toBe('another directory is at its path now')
    })

    test('one on another file system: its layer has another place', async () => {
      const said = await inMount('mount -t tmpfs none "$1"; cd "$1"; exec "$0" true')
      expect(/^it is on another file system/.test(said)).toBe(policy === 'a copy-on-write directory')
    })

    test('one whose path is one of the sandbox: nobody could tell them apart', async () => {
      const said = await inMount(
        'exec 3<"$0"; mount -t tmpfs none /home; mkdir /home/sandbox; cd /home/sandbox; exec /proc/self/fd/3 true',
      )
      expect(said).toMatch(/ is in \/home\/sandbox$/)
    })
  })

  test('one that was removed', async () => {
    const directory = made(at('removed'))
    const plan = await left(['--rw', '.', '--', 'true'], made(at('first/one')))
    const { stdout } = await execa('sh', ['-c', 'rmdir "$PWD"; exec "$0" true', driver('native/fill')], {
      cwd: directory,
      input: plan?.bytes ?? Buffer.of(),
      reject: false,
      env: { ASAN_OPTIONS: 'detect_leaks=0' },
    })
    expect(stdout).toMatch(/^it has no path/)
  })

  test.each([[['--rw', '.']], [[]]])('none, where HOME leads to another home than it did: %j', async (options) => {
    const directory = made(at('empty'))
    const { bytes = Buffer.of() } = (await left([...options, '--', 'true'], directory)) ?? {}
    expect(await fill(bytes, directory, ['true'])).not.toBe('something has changed')
    linkOnce(at('named-home'), made(at('another-home')))
    expect(await fill(bytes, directory, ['true'])).toBe('something has changed')
    linkOnce(at('named-home'), site.home)
  })

  test.each<readonly [string, () => readonly string[], RegExp]>([
    ['around where the caller stands', () => [at('stands')], /^\/.* is in \//],
    ['in it', () => [made(at('stands/here/below'))], /is in .*\/stands\/here$/],
    [
      'behind a link',
      () => [withMade(at('real'), () => linkOnce(at('other'))) && at('other')],
      /without following links/,
    ],
    ['not in its shortest form', () => [`${at('real')}/../real`], /not the shortest form/],
    [
      'a file',
      () => [withMade(at('real'), () => writeFileSync(at('real/file'), '')) && at('real/file')],
      /cannot be opened as a directory/,
    ],
    ['not named', () => [], /another number of directories/],
    ['one of two', () => [made(at('real')), made(at('real2'))], /another number of directories/],
  ])('a zone of another directory that is %s', async (_, named, why) => {
    const stand = made(at('stands/here'))
    const plan = await left(['--rw', `${made(at('first/one'))}:/work`, '--', 'true'], stand)
    expect(plan?.servesOneBecause).toBeUndefined()
    expect(await fill(plan?.bytes ?? Buffer.of(), stand, ['true', ...named()])).toMatch(why)
  })

  const BOUND: readonly (readonly [string, readonly string[], RegExp, string?])[] = [
    ['a part of a protected name as the zone', ['--rw', '.'], /^the plan of another directory/, 'bound/.github'],
    ['a zone beside it', ['--rw', '.', '--ro', '../beside'], /what is above/],
    [
      'a way up to the root and beyond',
      ['--rw', '.', '--ro', `${'../'.repeat(99)}etc/hostname:/mnt/name`],
      /what is above/,
    ],
    ['a zone in it', ['--ro', 'below'], /^the plan was made from .*below$|another one$/],
    ['a zone that may be in it', ['--cow', '.', '--ro', 'nowhere:optional'], /^the plan was made from .*nowhere$/],
    [
      'a part of it at another place',
      ['--cow', '.', '--ro', '.vscode:/mnt/x:optional'],
      /^the plan was made from .*vscode$/,
    ],
    ['it by its path', ['--rw', 'PATH'], /another one$|^from another directory/],
    ['a profile in it', ['--profile', './p.yaml'], /^from another directory|^the plan was made from/],
    ['the same path inside', ['--same-path', '--rw', '.'], /^samePath/],
    ['a cache of its own', ['--cache', 'npm', '--rw', '.'], /^nothing is left$/],
    ['a home of its own', ['--home', 'project', '--rw', '.'], /^home/],
    ['names of tools', ['--allow-host', '@npm', '--rw', '.'], /^nothing is left$/],
    ['a program in it', ['--rw', '.', '--', './.cargo/bin/tool'], /is looked for in the directory$/],
  ]
  test.each(BOUND.map(([what, words, why, name = 'bound/one']) => ({ what, words, why, name })))(
    'is not made for others where it has $what',
    async ({ words, why, name }) => {
      const directory = made(at(name))
      made(at('bound/one/below'))
      made(at('bound/beside'))
      writeFileSync(at('bound/one/p.yaml'), 'sandbox: { extends: default }\n')
      utimesSync(at('bound/one/p.yaml'), 0, 0)
      writeFileSync(join(made(at('bound/one/.cargo/bin')), 'tool'), '', { mode: 0o755 })
      await setTimeout(SETTLED_MS)
      const all = words.map((word) => (word === 'PATH' ? directory : word))
      const plan = await left(all.includes('--') ? all : [...all, '--', 'true'], directory)
      expect(plan === undefined ? 'nothing is left' : plan.servesOneBecause).toMatch(why)
    },
  )
})
