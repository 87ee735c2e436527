import { describe, expect, test } from 'vitest'
import { TOOLCHAINS, toolchainAt } from '../../src/plan/toolchain.ts'
import { DOCKER, PLAIN_TREE, planIn, ro, rw, type Tree, type World } from './world.ts'

const HOME = '/home/ann'
const CWD = `${HOME}/project`

function toolchains(world: World): string[] {
  return planIn(world)
    .zones.filter(({ from }) => from.startsWith('toolchain'))
    .map(({ from, target }) => `${from}: ${target}`)
    .sort()
}

const path = (world: World): string => planIn(world).env.find(({ name }) => name === 'PATH')?.value ?? ''
const world = (tree: Tree, entries: readonly string[], command = 'true'): World => ({
  tree: { ...PLAIN_TREE, ...tree },
  request: { path: [...entries, '/usr/bin', '/bin'], command: [command] },
})

/** Paths in these tables are below the home directory, unless they begin with a slash. */
const at = (path: string): string => (path.startsWith('/') ? path : `${HOME}/${path}`)
/** `A = B` is a link from A to B, as it is written; every other word is a file. */
const treeOf = (text: string): Tree =>
  Object.fromEntries(
    text.split(', ').map((entry) => {
      const [path = '', link] = entry.split(' = ')
      return [at(path), link === undefined ? 'file' : `-> ${link.replace('~', HOME)}`]
    }),
  )

describe('A toolchain is shown read-only when PATH leads to', () => {
  const BREW = '/home/linuxbrew/.linuxbrew'
  const PYTHON = `~/.pyenv/versions/3.12/bin/python3, .pyenv/versions/3.12/bin/python3`
  test.each<[title: string, tree: string, entry: string, command: string, expected: string]>([
    ['nvm', '.nvm/versions/node/v20/bin/node', '.nvm/versions/node/v20/bin', 'node', 'nvm .nvm/versions/node/v20'],
    ['pyenv by its shims', '.pyenv/shims/python', '.pyenv/shims', 'python', 'pyenv .pyenv'],
    [
      'cargo, its programs only, and rustup',
      '.cargo/bin/cargo, .cargo/credentials.toml, .rustup/settings.toml',
      '.cargo/bin',
      'cargo',
      'cargo .cargo/bin, cargo .rustup',
    ],
    ['cargo without rustup', '.cargo/bin/rg', '.cargo/bin', 'rg', 'cargo .cargo/bin'],
    ['volta', '.volta/bin/node = volta-shim, .volta/bin/volta-shim', '.volta/bin', 'node', 'volta .volta'],
    ['asdf', '.asdf/shims/ruby', '.asdf/shims', 'ruby', 'asdf .asdf'],
    [
      'fnm by a link of the session',
      '/run/fnm_multishells/1 = ~/.local/share/fnm/node-versions/v20/installation, .local/share/fnm/node-versions/v20/installation/bin/node',
      '/run/fnm_multishells/1/bin',
      'node',
      'fnm .local/share/fnm/node-versions/v20',
    ],
    [
      'sdkman',
      '.sdkman/candidates/java/current = 17.0.9, .sdkman/candidates/java/17.0.9/bin/java',
      '.sdkman/candidates/java/current/bin',
      'java',
      'sdkman .sdkman/candidates/java/17.0.9',
    ],
    ['homebrew', `${BREW}/bin/jq`, `${BREW}/bin`, 'jq', `homebrew ${BREW}`],
    ['conda', 'miniconda3/bin/python', 'miniconda3/bin', 'python', 'conda miniconda3'],
    ['a directory of /opt', '/opt/node/bin/node', '/opt/node/bin', 'node', 'opt /opt/node'],
    [
      'a tool of pipx and the interpreter behind it',
      `.local/bin/black = ../share/pipx/venvs/black/bin/black, .local/share/pipx/venvs/black/bin/black, .local/share/pipx/venvs/black/bin/python = ${PYTHON}`,
      '.local/bin',
      'black',
      'local .local/bin, pipx .local/share/pipx/venvs/black, pyenv .pyenv',
    ],
    ['a venv of the workspace', `project/.venv/bin/python = ${PYTHON}`, 'project/.venv/bin', 'python', 'pyenv .pyenv'],
    ['nix', '.nix-profile = /nix/store/abc, /nix/store/abc/bin/hello', '.nix-profile/bin', 'hello', 'nix /nix/store'],
    [
      'a command by its path',
      '.nvm/versions/node/v20/bin/node',
      '',
      `${HOME}/.nvm/versions/node/v20/bin/node`,
      'nvm .nvm/versions/node/v20',
    ],
  ])('%s', (_title, tree, entry, command, expected) => {
    const shown = expected.split(', ').map((one) => {
      const [kind = '', path = ''] = one.split(' ')
      return `toolchain ${kind}: ${at(path)}`
    })
    expect(toolchains(world(treeOf(tree), entry === '' ? [] : [at(entry)], command))).toEqual(shown)
  })
})

describe('Nothing is shown', () => {
  const [node, entry] = [treeOf('.nvm/versions/node/v20/bin/node'), at('.nvm/versions/node/v20/bin')]
  const opt = world(treeOf('/opt/node/bin/node'), ['/opt/node/bin'])
  const ann = world(treeOf('/opt/ann/bin/tool'), ['/opt/ann/bin'])
  const fnm = '.config/fnm/node-versions/v1/bin'

  test.each<[title: string, world: World]>([
    ['when toolchains are off', { ...world(node, [entry]), policy: { toolchains: 'off' } }],
    ['for a PATH entry that does not exist', world({}, [entry])],
    ['for a relative PATH entry', world(node, ['../.nvm/versions/node/v20/bin', '.', ''])],
    ['for a directory of no known kind', world(treeOf('tools/bin/x'), [at('tools/bin')])],
    ['for the home directory itself', world(treeOf('x'), [HOME])],
    ['for directories of credentials', world(treeOf('.ssh/x, .config/bin/x'), [at('.ssh'), at('.config/bin')])],
    ['for a home in /opt', { ...ann, request: { ...ann.request, home: '/opt/ann', homes: ['/opt/ann'] } }],
    ['for a toolchain below the configuration of a home', world(treeOf(`${fnm}/node`), [at(fnm)])],
    ['for a link to credentials', world(treeOf('.pyenv = ~/.ssh, .ssh/shims/x'), [at('.pyenv/shims')])],
    ['for a link to the home directory', world(treeOf('/opt/x = ~, bin/x'), ['/opt/x/bin'])],
    ['for what a zone shows already', { ...opt, policy: { zones: [ro('/opt/node')] } }],
    [
      'below a writable zone',
      { ...opt, tree: { ...opt.tree, '/srv': 'directory' }, policy: { zones: [rw('/srv', '/opt')] } },
    ],
    ['in a container', { ...world(node, [entry]), policy: { backend: 'docker' }, machine: { docker: DOCKER } }],
  ])('%s', (_title, one) => {
    expect(toolchains(one)).toEqual([])
  })
})

describe('PATH inside', () => {
  test('keeps what is visible in the order of the caller and adds the standard directories', () => {
    const entries = [at('project/bin'), at('tools'), '/opt/node/bin', '/usr/bin', '.', '/opt/node/bin']
    expect(path(world(treeOf('/opt/node/bin/node, tools/x, project/bin/x'), entries))).toBe(
      '/workspace/bin:/opt/node/bin:/usr/bin:/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin',
    )
  })

  test('names a toolchain by its canonical place when the name used is not visible', () => {
    expect(path(world(treeOf('/run/x = /opt/node, /opt/node/bin/node'), ['/run/x/bin']))).toMatch(/^\/opt\/node\/bin:/)
  })

  test('leads to a toolchain under the name that its scripts use when /home is a link', () => {
    const there = { cwd: '/data/home/ann/project', home: '/data/home/ann' }
    const tree = { '/home': '-> /data/home', '/data/home/ann/.pyenv/shims/python': 'file', [there.cwd]: 'directory' }
    const plan = planIn({ tree: { ...PLAIN_TREE, ...tree }, request: { path: [at('.pyenv/shims')], ...there } })
    expect(plan.zones.map(({ target }) => target)).toContain('/data/home/ann/.pyenv')
    expect(plan.system).toContainEqual({ op: 'symlink', target: at('.pyenv'), link: '/data/home/ann/.pyenv' })
  })

  test('cannot be broken by a colon in the name of a directory', () => {
    const entries = path(world(treeOf('/opt/a:b/bin/x'), ['/opt/a:b/bin'])).split(':')
    expect(entries.filter((one) => !one.startsWith('/') || one.includes('/opt/a'))).toEqual([])
  })
})

test('Variables of toolchains point at what is shown, and writable homes elsewhere', () => {
  const tree = treeOf('.cargo/bin/cargo, .rustup/x, .pyenv/shims/python')
  const variables = (one: World) => Object.fromEntries(planIn(one).env.map(({ name, value }) => [name, value]))
  expect(variables(world(tree, [at('.cargo/bin'), at('.pyenv/shims')]))).toMatchObject({
    RUSTUP_HOME: at('.rustup'),
    CARGO_HOME: '/home/sandbox/.cargo',
    PYENV_ROOT: at('.pyenv'),
  })
  expect(variables(world({}, [at('.pyenv/shims')]))).not.toHaveProperty('PYENV_ROOT')
})

test.each([
  ['its directory', 'tools/lint', 'tools/lint', `--ro ${HOME}/tools`],
  ['its installation, where it lies in a bin', '/srv/tools/bin/lint', '/srv/tools/bin/lint', '--ro /srv/tools'],
  ['one for both', '/srv/t/bin/lint = ../lib/run, /srv/t/lib/run', '/srv/t/bin/lint', '--ro /srv/t'],
])('The flag of a hidden command shows %s', (_title, tree, command, flag) => {
  const entry = at(command).replace(/\/lint$/, '')
  const { warnings } = planIn(world(treeOf(tree), [entry], 'lint'))
  expect(warnings).toEqual([`${at(command)} is not visible inside; to show it: ${flag}`])
})

test('Every kind of toolchain is recognised by its own pattern', () => {
  for (const { name, pattern } of TOOLCHAINS) {
    const path = pattern.startsWith('/') ? pattern : `/base/${pattern}`
    expect(toolchainAt(`${path.replaceAll('*', 'x')}/bin/tool`)?.kind.name).toBe(name)
  }
})

describe('A link of the project', () => {
  const OPAM = '/data/victim/.opam'
  const shown = (tree: string, entries: readonly string[], command = 'true') =>
    toolchains(world(treeOf(`${tree}, ${OPAM}/bin/t, x/.pyenv/bin/t`), entries, command))

  test.each<[title: string, tree: string, entries: string[], command?: string]>([
    ['in PATH', `project/bin = ${OPAM}/bin`, [`${CWD}/bin`]],
    ['above an entry of PATH', `project/venv = ${OPAM}`, [`${CWD}/venv/bin`]],
    ['that is the command', `project/configure = ${OPAM}/bin/t`, [], './configure'],
    ['found by PATH', `project/bin/t = ${OPAM}/bin/t`, [`${CWD}/bin`], 't'],
    ['to a place that is only called like an interpreter', 'project/bin = ~/x/.pyenv/bin', [`${CWD}/bin`]],
  ])('shows nothing outside of it: %s', (_title, tree, entries, command) => {
    expect(shown(tree, entries, command)).toEqual([])
  })

  test('is no worse than one elsewhere, which is followed', () => {
    expect(shown(`/srv/bin = ${OPAM}/bin`, ['/srv/bin'])).toEqual([`toolchain opam: ${OPAM}`])
  })
})
