import { describe, expect, test } from 'vitest'
import { protectedIn, protectProblem } from '../../src/plan/protect.ts'
import { PLAIN_TREE, planIn, type Tree, zone } from './world.ts'

const SOURCE = '/home/ann/project'

describe('Protected paths of a writable zone', () => {
  test.each<[title: string, protect: string[], files: string[], source: string, expected: string[]]>([
    ['are relative to its root', ['.git/hooks'], [], SOURCE, ['.git/hooks']],
    ['come parents first and without repetition', ['b', 'a/b', 'b/', './b'], [], SOURCE, ['a/b', 'b']],
    ['leave out what a parent covers', ['.git', '.git/hooks'], [], SOURCE, ['.git']],
    ['do not confuse names that begin alike', ['.git', '.github'], [], SOURCE, ['.git', '.github']],
    [
      'keep the rest when the zone is part of one',
      ['.git/hooks', '.git/config'],
      [],
      `${SOURCE}/.git`,
      ['.git/config', '.git/hooks', 'config', 'hooks'],
    ],
    ['keep the rest at every depth', ['a/b/c'], [], '/srv/a/b', ['a/b/c', 'c']],
    ['include policy files that the zone would show', [], [`${SOURCE}/profiles/x.yaml`], SOURCE, ['profiles/x.yaml']],
    ['leave out policy files elsewhere', [], ['/etc/x.yaml', '/home/ann/project2/y'], SOURCE, []],
  ])('%s', (_title, protect, files, source, expected) => {
    expect(protectedIn({ source, protect, files })).toEqual(expected)
  })

  test.each(['/etc', '..', 'a/../..', '.', '', 'a\0b', '../x', './'])('cannot be %j', (path) => {
    expect(protectProblem(path)).toBeTypeOf('string')
  })

  test.each(['.git/hooks', 'a/../b', 'trailing/', '..a', 'new\nline', '-dash'])('can be %j', (path) => {
    expect(protectProblem(path)).toBeUndefined()
  })
})

describe('In a plan', () => {
  const protectOf = (workspace: 'ro' | 'rw'): readonly string[] =>
    planIn({ policy: { workspace } }).zones[0]?.protect ?? []

  test('a writable workspace has protected paths, a read-only one needs none', () => {
    expect(protectOf('rw')).toEqual(['.git/config', '.git/hooks', '.mcp.json', '.vscode'])
    expect(protectOf('ro')).toEqual([])
  })

  test.each([
    ['itself', { [`${SOURCE}/.vscode`]: '-> /srv/shared', '/srv/shared': 'directory' }, `${SOURCE}/.vscode`],
    ['in its parent', { [`${SOURCE}/.git`]: '-> real.git', [`${SOURCE}/real.git`]: 'directory' }, `${SOURCE}/.git`],
  ])('a protected path that is a symbolic link %s is refused, since it could be replaced', (_title, tree, link) => {
    expect(() => planIn({ tree: { ...PLAIN_TREE, ...tree }, policy: { workspace: 'rw' } })).toThrow(
      `${link} must stay read-only but is a symbolic link`,
    )
    expect(planIn({ tree: { ...PLAIN_TREE, ...tree }, policy: { workspace: 'ro' } }).zones).toHaveLength(1)
  })

  test('a file that decides the policy cannot be a writable zone', () => {
    const zones = [zone({ mode: 'rw', hostPath: `${SOURCE}/notes.txt`, target: '/notes' })]
    expect(() => planIn({ policy: { zones, protectFiles: [`${SOURCE}/notes.txt`] } })).toThrow('decides the policy')
    expect(planIn({ policy: { zones } }).zones).toHaveLength(1)
  })

  test('a file that decides the policy stays read-only under every name', () => {
    const tree = { ...PLAIN_TREE, '/home/ann/link': '-> project', [`${SOURCE}/p.yaml`]: 'file' }
    const plan = planIn({ tree, policy: { workspace: 'rw', protect: [], protectFiles: ['/home/ann/link/p.yaml'] } })
    expect(plan.zones[0]?.protect).toEqual(['p.yaml'])
  })

  const deciding = (tree: Tree, protectFiles: readonly string[], hostPath = SOURCE) =>
    planIn({
      tree: { ...PLAIN_TREE, ...tree },
      policy: { zones: [zone({ mode: 'rw', hostPath, target: '/z' })], protect: [], protectFiles },
    })

  test.each<[title: string, tree: Tree, name: string, problem: string]>([
    [
      'itself',
      { [`${SOURCE}/p.yaml`]: '-> ../p.yaml', '/home/ann/p.yaml': 'file' },
      `${SOURCE}/p.yaml`,
      `${SOURCE}/p.yaml is a symbolic link to ../p.yaml,`,
    ],
    [
      'on the way',
      { [`${SOURCE}/conf`]: '-> /srv/c', '/srv/c/p.yaml': 'file' },
      `${SOURCE}/conf/p.yaml`,
      `${SOURCE}/conf is a symbolic link to /srv/c on the way to ${SOURCE}/conf/p.yaml,`,
    ],
    [
      'that another link leads to',
      { '/home/ann/a': '-> project/b', [`${SOURCE}/b`]: '-> /srv/c', '/srv/c/p.yaml': 'file' },
      '/home/ann/a/p.yaml',
      `${SOURCE}/b is a symbolic link to /srv/c`,
    ],
    [
      'that leads nowhere',
      { [`${SOURCE}/p.yaml`]: '-> none' },
      `${SOURCE}/p.yaml`,
      `${SOURCE}/p.yaml is a symbolic link to none`,
    ],
    [
      'that leads back',
      { [`${SOURCE}/in`]: '-> ../x/../../..', '/home/ann/x': 'directory', '/p.yaml': 'file' },
      `${SOURCE}/in/p.yaml`,
      `${SOURCE}/in is a symbolic link`,
    ],
    [
      'that leads to itself',
      { [`${SOURCE}/p.yaml`]: '-> p.yaml' },
      `${SOURCE}/p.yaml`,
      `${SOURCE}/p.yaml is a symbolic link to p.yaml`,
    ],
  ])('a deciding name with a link in a writable zone %s is refused', (_title, tree, name, problem) => {
    expect(() => deciding(tree, [name])).toThrow(problem)
    expect(deciding(tree, [name], '/usr/local/bin').zones).toHaveLength(1)
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
