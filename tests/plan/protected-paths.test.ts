import { describe, expect, test } from 'vitest'
import { type ProtectedWords, protectedIn, protectedWords, protectProblem } from '../../src/plan/protected-paths.ts'
import type { Policy } from '../../src/policy/policy.ts'
import { OPENABLE_NAMES, PROTECTED_NAMES } from '../../src/policy/protected.ts'
import { PLAIN_REQUEST, PLAIN_TREE, planIn, type Tree, zone } from './world.ts'

const SOURCE = '/home/ann/project'

/** Only the names that the test is about. */
const words = (zone: readonly string[], home: readonly string[] = []): ProtectedWords => ({ zone, home })

describe('Protected paths of a writable zone', () => {
  test.each<[title: string, protect: string[], files: string[], source: string, expected: string[]]>([
    ['are relative to its root', ['a/b'], [], SOURCE, ['a/b']],
    ['come parents first and without repetition', ['b', 'a/b', 'b/', './b'], [], SOURCE, ['a/b', 'b']],
    ['leave out what a parent covers', ['.git', '.git/hooks'], [], SOURCE, ['.git']],
    ['do not confuse names that begin alike', ['.git', '.github'], [], SOURCE, ['.git', '.github']],
    [
      'keep the rest when the zone is part of one',
      ['.github/workflows', '.github/hooks'],
      [],
      `${SOURCE}/.github`,
      ['.github/hooks', '.github/workflows', 'hooks', 'workflows'],
    ],
    ['keep the rest at every depth', ['a/b/c'], [], '/srv/a/b', ['a/b/c', 'c']],
    ['include policy files that the zone would show', [], [`${SOURCE}/profiles/x.yaml`], SOURCE, ['profiles/x.yaml']],
    ['leave out policy files elsewhere', [], ['/etc/x.yaml', '/home/ann/project2/y'], SOURCE, []],
  ])('%s', (_title, zone, files, source, expected) => {
    expect(protectedIn({ source, words: words(zone), homes: [], files })).toEqual(expected)
  })

  const HOMES = ['/home/ann', '/home/bob', '/root']
  test.each<[title: string, source: string, expected: string[]]>([
    ['in the home itself', '/home/ann', ['.bashrc', '.config/fish']],
    ['in each home that it holds', '/home', ['ann/.bashrc', 'ann/.config/fish', 'bob/.bashrc', 'bob/.config/fish']],
    ['as what is left of them in a part of a home', '/home/ann/.config', ['fish']],
    ['not in a project below a home', '/home/ann/project', []],
    ['not in a zone that is the name itself, which was asked for', '/home/ann/.config/fish', []],
    ['not in a directory whose name begins like a home', '/home/anna', []],
  ])('that count in homes are protected %s', (_title, source, expected) => {
    expect(protectedIn({ source, words: words([], ['.bashrc', '.config/fish']), homes: HOMES, files: [] })).toEqual(
      expected,
    )
  })

  test.each(['/etc', '..', 'a/../..', '.', '', 'a\0b', '../x', './'])('cannot be %j', (path) => {
    expect(protectProblem(path)).toBeTypeOf('string')
  })

  test.each(['.git/hooks', 'a/../b', 'trailing/', '..a', 'new\nline', '-dash'])('can be %j', (path) => {
    expect(protectProblem(path)).toBeUndefined()
  })
})

describe('The names of a policy', () => {
  const ofZones = PROTECTED_NAMES.filter(({ where }) => where === 'zone').map(({ name }) => name)
  const all = PROTECTED_NAMES.map(({ name }) => name)

  test('are the built-in ones, its own, and git directories', () => {
    expect(protectedWords({ protect: ['mine'], protectNot: [] })).toEqual({
      zone: [...ofZones, 'mine'],
      home: all,
      git: { open: [] },
    })
  })

  test('are fewer by each name that can be opened', () => {
    const wordsWith = (protectNot: readonly string[]) => JSON.stringify(protectedWords({ protect: [], protectNot }))
    expect(OPENABLE_NAMES.filter((name) => wordsWith([name]) === wordsWith([]))).toEqual(['PATH'])
  })

  test('leave out what is opened, and nothing else', () => {
    const { zone, home, git } = protectedWords({ protect: [], protectNot: ['.vscode', '.bashrc'] })
    expect(zone).toEqual(ofZones.filter((name) => name !== '.vscode'))
    expect(home).toEqual(all.filter((name) => name !== '.vscode' && name !== '.bashrc'))
    expect(git).toEqual({ open: [] })
  })

  test('keep what the policy itself protects, whatever is opened', () => {
    expect(protectedWords({ protect: ['.vscode'], protectNot: ['.vscode', '*'] }).zone).toEqual(['.vscode'])
  })

  test('open single names of git directories, or all of them', () => {
    expect(protectedWords({ protect: [], protectNot: ['.git/config', '.git/hooks'] }).git).toEqual({
      open: ['config', 'hooks'],
    })
    expect(protectedWords({ protect: [], protectNot: ['.git'] }).git).toEqual({ open: ['.git'] })
    expect(protectedWords({ protect: [], protectNot: ['.git', '.hg', '.jj'] }).git).toBeUndefined()
    expect(protectedWords({ protect: [], protectNot: ['*'] }).git).toBeUndefined()
  })
})

describe('In a plan', () => {
  const protectOf = (workspace: 'ro' | 'rw'): readonly string[] =>
    planIn({ policy: { workspace } }).zones[0]?.protect ?? []

  test('a writable workspace has protected paths, a read-only one needs none', () => {
    expect(protectOf('rw')).toEqual(expect.arrayContaining(['.mcp.json', '.vscode']))
    expect(protectOf('rw')).not.toContain('.bashrc')
    expect(protectOf('ro')).toEqual([])
  })

  test('a writable zone says whether git directories in it are protected, a read-only one and a file need nothing', () => {
    const gitOf = (policy: Partial<Policy>) => planIn({ policy }).zones[0]?.git
    expect(gitOf({ workspace: 'rw' })).toEqual({ open: [] })
    expect(gitOf({ workspace: 'rw', protectNot: ['.git/config'] })).toEqual({ open: ['config'] })
    expect(gitOf({ workspace: 'rw', protectNot: ['.git'] })).toEqual({ open: ['.git'] })
    expect(gitOf({ workspace: 'ro' })).toBeUndefined()
    expect(gitOf({ zones: [zone({ mode: 'rw', hostPath: `${SOURCE}/notes.txt`, target: '/n' })] })).toBeUndefined()
  })

  test('a protected zone names the home whose links count, a read-only one and one without protection do not', () => {
    const homeOf = (policy: Partial<Policy>) => planIn({ policy }).zones[0]?.home
    const home = PLAIN_REQUEST.home
    expect(homeOf({ workspace: 'rw' })).toEqual({ path: home, open: [] })
    expect(homeOf({ workspace: 'cow', protectNot: ['.bashrc', '.git'] })).toEqual({ path: home, open: ['.bashrc'] })
    expect(homeOf({ workspace: 'rw', protectNot: ['*'] })).toBeUndefined()
    expect(homeOf({ workspace: 'ro' })).toBeUndefined()
  })

  test('a directory of PATH in a writable zone is protected, unless the policy opens PATH', () => {
    const tree = { ...PLAIN_TREE, [`${SOURCE}/.venv/bin`]: 'directory' }
    const protectOf = (protectNot: readonly string[]) =>
      planIn({
        tree,
        request: { path: ['/usr/bin', `${SOURCE}/.venv/bin`, 'node_modules/.bin'] },
        policy: { workspace: 'rw', protectNot },
      }).zones[0]?.protect
    expect(protectOf([])).toContain('.venv/bin')
    expect(protectOf(['PATH'])).not.toContain('.venv/bin')
    expect(protectOf(['*'])).toEqual([])
  })

  test('a home in a zone that was reached by a link is protected', () => {
    const tree = { ...PLAIN_TREE, '/people': '-> /home', '/home/ann/.bashrc': 'file' }
    const zones = [zone({ mode: 'rw', hostPath: '/people', target: '/people' })]
    expect(planIn({ tree, policy: { zones } }).zones[0]?.protect).toContain('ann/.bashrc')
  })

  test('more homes than can be protected are refused', () => {
    const homes = Array.from({ length: 13 }, (_, index) => `/home/u${index}`)
    const zones = [zone({ mode: 'rw', hostPath: '/home', target: '/people' })]
    expect(() => planIn({ request: { homes }, policy: { zones } })).toThrow('/home holds 13 home directories')
    expect(planIn({ request: { homes: homes.slice(1) }, policy: { zones } }).zones).toHaveLength(1)
  })

  test('a file that decides the policy cannot be a writable zone', () => {
    const zones = [zone({ mode: 'rw', hostPath: `${SOURCE}/notes.txt`, target: '/notes' })]
    expect(() => planIn({ policy: { zones, protectFiles: [`${SOURCE}/notes.txt`] } })).toThrow('decides the policy')
    expect(planIn({ policy: { zones, workspace: 'none' } }).zones).toHaveLength(1)
  })

  test('a file that decides the policy stays read-only under every name', () => {
    const tree = { ...PLAIN_TREE, '/home/ann/link': '-> project', [`${SOURCE}/p.yaml`]: 'file' }
    const plan = planIn({
      tree,
      policy: { workspace: 'rw', protectNot: ['*'], protectFiles: ['/home/ann/link/p.yaml'] },
    })
    expect(plan.zones[0]?.protect).toEqual(['p.yaml'])
  })

  const deciding = (tree: Tree, protectFiles: readonly string[], hostPath = SOURCE) =>
    planIn({
      tree: { ...PLAIN_TREE, ...tree },
      policy: {
        zones: [zone({ mode: 'rw', hostPath, target: '/z' })],
        workspace: 'none',
        protectNot: ['*'],
        protectFiles,
      },
    })

  const [FILE, IN] = [`${SOURCE}/p.yaml`, `${SOURCE}/in`]
  const elsewhere = {
    '/srv/c/p.yaml': 'file',
    '/home/ann/p.yaml': 'file',
    '/home/ann/x': 'directory',
    '/p.yaml': 'file',
  }
  test.each<[title: string, tree: Tree, name: string, problem: string]>([
    ['itself', { [FILE]: '-> ../p.yaml' }, FILE, `${FILE} is a symbolic link to ../p.yaml,`],
    [
      'on the way',
      { [IN]: '-> /srv/c' },
      `${IN}/p.yaml`,
      `${IN} is a symbolic link to /srv/c on the way to ${IN}/p.yaml,`,
    ],
    ['after another', { '/a': `-> ${IN}`, [IN]: '-> /srv/c' }, '/a/p.yaml', `${IN} is a symbolic link to /srv/c`],
    ['that leads nowhere', { [FILE]: '-> none' }, FILE, `${FILE} is a symbolic link to none`],
    ['that leads back', { [IN]: '-> ../x/../../..' }, `${IN}/p.yaml`, `${IN} is a symbolic link`],
    ['that leads to itself', { [FILE]: '-> p.yaml' }, FILE, `${FILE} is a symbolic link to p.yaml`],
  ])('a deciding name with a link in a writable zone %s is refused', (_title, tree, name, problem) => {
    expect(() => deciding({ ...elsewhere, ...tree }, [name])).toThrow(problem)
    expect(deciding({ ...elsewhere, ...tree }, [name], '/usr/local/bin').zones).toHaveLength(1)
  })

  test('a deciding name that links outside of the zone lead into it is protected where it ends', () => {
    const tree = {
      '/etc/a': '-> /home/ann/l',
      '/home/ann/l': '-> project/conf/../conf',
      [`${SOURCE}/conf/p.yaml`]: 'file',
    }
    expect(deciding(tree, ['/etc/a/p.yaml']).zones[0]?.protect).toEqual(['conf/p.yaml'])
  })

  test('a deciding file that is not there is protected all the same', () => {
    const tree = { '/home/ann/l': '-> project' }
    const names = [`${SOURCE}/w.worker`, `${SOURCE}/new/deep/p.yaml`, '/home/ann/l/other', '/srv/none']
    expect(deciding(tree, names).zones[0]?.protect).toEqual(['new/deep/p.yaml', 'other', 'w.worker'])
  })

  test.each([SOURCE, `${SOURCE}/data`])('a zone at or below a deciding directory is refused: %s', (hostPath) => {
    expect(() => deciding({}, [SOURCE], hostPath)).toThrow('decides the policy')
  })
})
