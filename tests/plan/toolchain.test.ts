import { describe, expect, test } from 'vitest'
import { TOOLCHAINS, toolchainAt } from '../../src/plan/toolchain.ts'
import { PLAIN_TREE, planIn, type Tree, type World, zone } from './world.ts'

const HOME = '/home/ann'
const USUAL = ['/usr/bin', '/bin']

function toolchains(world: World): string[] {
  return planIn(world)
    .zones.filter(({ from }) => from.startsWith('toolchain'))
    .map(({ from, target }) => `${from}: ${target}`)
}

const path = (world: World): string => planIn(world).env.find(({ name }) => name === 'PATH')?.value ?? ''
const world = (tree: Tree, entries: string[], command = 'true'): World => ({
  tree: { ...PLAIN_TREE, ...tree },
  request: { path: [...entries, ...USUAL], command: [command] },
})

describe('A toolchain is shown read-only when PATH leads to', () => {
  test.each<[title: string, tree: Tree, entries: string[], command: string, expected: string[]]>([
    [
      'nvm',
      { [`${HOME}/.nvm/versions/node/v20.1.0/bin/node`]: 'file', [`${HOME}/.nvm/alias/default`]: 'file' },
      [`${HOME}/.nvm/versions/node/v20.1.0/bin`],
      'node',
      [`toolchain nvm: ${HOME}/.nvm/versions/node/v20.1.0`],
    ],
    [
      'pyenv by its shims',
      { [`${HOME}/.pyenv/shims/python`]: 'file', [`${HOME}/.pyenv/versions/3.12.1/bin/python`]: 'file' },
      [`${HOME}/.pyenv/shims`],
      'python',
      [`toolchain pyenv: ${HOME}/.pyenv`],
    ],
    [
      'cargo, its programs only, and rustup',
      {
        [`${HOME}/.cargo/bin/cargo`]: 'file',
        [`${HOME}/.cargo/credentials.toml`]: 'file',
        [`${HOME}/.rustup/settings.toml`]: 'file',
      },
      [`${HOME}/.cargo/bin`],
      'cargo',
      [`toolchain cargo: ${HOME}/.cargo/bin`, `toolchain cargo: ${HOME}/.rustup`],
    ],
    [
      'cargo without rustup',
      { [`${HOME}/.cargo/bin/rg`]: 'file' },
      [`${HOME}/.cargo/bin`],
      'rg',
      [`toolchain cargo: ${HOME}/.cargo/bin`],
    ],
    [
      'volta',
      { [`${HOME}/.volta/bin/node`]: '-> volta-shim', [`${HOME}/.volta/bin/volta-shim`]: 'file' },
      [`${HOME}/.volta/bin`],
      'node',
      [`toolchain volta: ${HOME}/.volta`],
    ],
    [
      'asdf',
      { [`${HOME}/.asdf/shims/ruby`]: 'file' },
      [`${HOME}/.asdf/shims`],
      'ruby',
      [`toolchain asdf: ${HOME}/.asdf`],
    ],
    [
      'fnm by a link of the session',
      {
        '/run/user/1000/fnm_multishells/1_2': `-> ${HOME}/.local/share/fnm/node-versions/v20/installation`,
        [`${HOME}/.local/share/fnm/node-versions/v20/installation/bin/node`]: 'file',
      },
      ['/run/user/1000/fnm_multishells/1_2/bin'],
      'node',
      [`toolchain fnm: ${HOME}/.local/share/fnm/node-versions/v20`],
    ],
    [
      'sdkman',
      {
        [`${HOME}/.sdkman/candidates/java/current`]: '-> 17.0.9',
        [`${HOME}/.sdkman/candidates/java/17.0.9/bin/java`]: 'file',
      },
      [`${HOME}/.sdkman/candidates/java/current/bin`],
      'java',
      [`toolchain sdkman: ${HOME}/.sdkman/candidates/java/17.0.9`],
    ],
    [
      'homebrew',
      { '/home/linuxbrew/.linuxbrew/bin/jq': 'file' },
      ['/home/linuxbrew/.linuxbrew/bin'],
      'jq',
      ['toolchain homebrew: /home/linuxbrew/.linuxbrew'],
    ],
    [
      'conda',
      { [`${HOME}/miniconda3/bin/python`]: 'file' },
      [`${HOME}/miniconda3/bin`],
      'python',
      [`toolchain conda: ${HOME}/miniconda3`],
    ],
    ['a directory of /opt', { '/opt/node/bin/node': 'file' }, ['/opt/node/bin'], 'node', ['toolchain opt: /opt/node']],
    [
      'a tool of pipx and the interpreter behind it',
      {
        [`${HOME}/.local/bin/black`]: '-> ../share/pipx/venvs/black/bin/black',
        [`${HOME}/.local/share/pipx/venvs/black/bin/black`]: 'file',
        [`${HOME}/.local/share/pipx/venvs/black/bin/python`]: `-> ${HOME}/.pyenv/versions/3.12/bin/python3`,
        [`${HOME}/.pyenv/versions/3.12/bin/python3`]: 'file',
      },
      [`${HOME}/.local/bin`],
      'black',
      [
        `toolchain local: ${HOME}/.local/bin`,
        `toolchain pipx: ${HOME}/.local/share/pipx/venvs/black`,
        `toolchain pyenv: ${HOME}/.pyenv`,
      ],
    ],
    [
      'a virtual environment of the workspace whose python is pyenv',
      {
        [`${HOME}/project/.venv/bin/python`]: `-> ${HOME}/.pyenv/versions/3.12/bin/python3`,
        [`${HOME}/.pyenv/versions/3.12/bin/python3`]: 'file',
      },
      [`${HOME}/project/.venv/bin`],
      'python',
      [`toolchain pyenv: ${HOME}/.pyenv`],
    ],
    [
      'nix',
      { [`${HOME}/.nix-profile`]: '-> /nix/store/abc-profile', '/nix/store/abc-profile/bin/hello': 'file' },
      [`${HOME}/.nix-profile/bin`],
      'hello',
      ['toolchain nix: /nix/store'],
    ],
    [
      'a command given by its path',
      { [`${HOME}/.nvm/versions/node/v20/bin/node`]: 'file' },
      [],
      `${HOME}/.nvm/versions/node/v20/bin/node`,
      [`toolchain nvm: ${HOME}/.nvm/versions/node/v20`],
    ],
  ])('%s', (_title, tree, entries, command, expected) => {
    expect(toolchains(world(tree, entries, command)).sort()).toEqual([...expected].sort())
  })
})

describe('Nothing is shown', () => {
  const node = { [`${HOME}/.nvm/versions/node/v20/bin/node`]: 'file' }
  const entry = `${HOME}/.nvm/versions/node/v20/bin`

  test.each<[title: string, world: World]>([
    ['when toolchains are off', { ...world(node, [entry]), policy: { toolchains: 'off' } }],
    ['for a PATH entry that does not exist', world({}, [entry])],
    ['for a relative PATH entry', world(node, ['../.nvm/versions/node/v20/bin', '.', ''])],
    ['for a directory of no known kind', world({ [`${HOME}/tools/bin/x`]: 'file' }, [`${HOME}/tools/bin`])],
    ['for the home directory itself', world({ [`${HOME}/x`]: 'file' }, [HOME])],
    [
      'for a directory of credentials',
      world({ [`${HOME}/.ssh/x`]: 'file', [`${HOME}/.config/bin/x`]: 'file' }, [`${HOME}/.ssh`, `${HOME}/.config/bin`]),
    ],
    [
      'for a home directory in a place of toolchains',
      {
        ...world({ '/opt/ann/bin/tool': 'file' }, ['/opt/ann/bin']),
        request: {
          ...world({ '/opt/ann/bin/tool': 'file' }, ['/opt/ann/bin']).request,
          home: '/opt/ann',
          homes: ['/opt/ann'],
        },
      },
    ],
    [
      'for a toolchain below the configuration of a home',
      world({ [`${HOME}/.config/fnm/node-versions/v1/bin/node`]: 'file' }, [
        `${HOME}/.config/fnm/node-versions/v1/bin`,
      ]),
    ],
    [
      'for a link from a toolchain to credentials',
      world({ [`${HOME}/.pyenv`]: `-> ${HOME}/.ssh`, [`${HOME}/.ssh/shims/x`]: 'file' }, [`${HOME}/.pyenv/shims`]),
    ],
    [
      'for a toolchain that is a link to the home directory',
      world({ '/opt/x': `-> ${HOME}`, [`${HOME}/bin/x`]: 'file' }, ['/opt/x/bin']),
    ],
    [
      'for what a zone shows already',
      {
        ...world({ '/opt/node/bin/node': 'file' }, ['/opt/node/bin']),
        policy: { zones: [zone({ mode: 'ro', hostPath: '/opt/node' })] },
      },
    ],
    [
      'below a writable zone',
      {
        ...world({ '/opt/node/bin/node': 'file', '/srv': 'directory' }, ['/opt/node/bin']),
        policy: { zones: [zone({ mode: 'rw', hostPath: '/srv', target: '/opt' })] },
      },
    ],
    [
      'on a backend with programs of its own',
      {
        ...world(node, [entry]),
        policy: { backend: 'docker' },
        machine: {
          docker: {
            program: 'docker',
            path: '/usr/bin/docker',
            clientVersion: '27',
            server: { ok: true },
            rootless: false,
            limits: ['memory', 'cpus', 'pids'],
            remote: false,
          },
        },
      },
    ],
  ])('%s', (_title, one) => {
    expect(toolchains(one)).toEqual([])
  })

  test('of ~/.cargo, where the key to publish packages may lie', () => {
    const shown = toolchains(
      world({ [`${HOME}/.cargo/bin/cargo`]: 'file', [`${HOME}/.cargo/credentials.toml`]: 'file' }, [
        `${HOME}/.cargo/bin`,
      ]),
    )
    expect(shown).toEqual([`toolchain cargo: ${HOME}/.cargo/bin`])
  })
})

describe('PATH inside', () => {
  test('keeps what is visible in the order of the caller and adds the standard directories', () => {
    const tree = { '/opt/node/bin/node': 'file', [`${HOME}/tools/x`]: 'file', [`${HOME}/project/bin/x`]: 'file' }
    expect(
      path(world(tree, [`${HOME}/project/bin`, `${HOME}/tools`, '/opt/node/bin', '/usr/bin', '.', '/opt/node/bin'])),
    ).toBe('/workspace/bin:/opt/node/bin:/usr/bin:/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin')
  })

  test('names a toolchain by its canonical place when the name used is not visible', () => {
    const tree = { '/run/x': '-> /opt/node', '/opt/node/bin/node': 'file' }
    expect(path(world(tree, ['/run/x/bin']))).toMatch(/^\/opt\/node\/bin:/)
  })

  test('leads to a toolchain under the name that its scripts use when /home is a link', () => {
    const tree = {
      '/home': '-> /data/home',
      '/data/home/ann/.pyenv/shims/python': 'file',
      '/data/home/ann/project': 'directory',
    }
    const plan = planIn({
      tree: { ...PLAIN_TREE, ...tree },
      request: { path: [`${HOME}/.pyenv/shims`], cwd: '/data/home/ann/project', home: '/data/home/ann' },
    })
    expect(plan.zones.map(({ target }) => target)).toContain('/data/home/ann/.pyenv')
    expect(plan.system).toContainEqual({ op: 'symlink', target: `${HOME}/.pyenv`, link: '/data/home/ann/.pyenv' })
  })

  test('cannot be broken by a colon in the name of a directory', () => {
    const plan = world({ '/opt/a:b/bin/x': 'file' }, ['/opt/a:b/bin'])
    expect(
      path(plan)
        .split(':')
        .every((entry) => entry.startsWith('/')),
    ).toBe(true)
    expect(path(plan)).not.toContain('a:b')
  })
})

describe('Variables of toolchains', () => {
  test('point at what is shown, and writable homes elsewhere', () => {
    const env = planIn(
      world(
        {
          [`${HOME}/.cargo/bin/cargo`]: 'file',
          [`${HOME}/.rustup/x`]: 'file',
          [`${HOME}/.pyenv/shims/python`]: 'file',
        },
        [`${HOME}/.cargo/bin`, `${HOME}/.pyenv/shims`],
      ),
    ).env
    expect(Object.fromEntries(env.map(({ name, value }) => [name, value]))).toMatchObject({
      RUSTUP_HOME: `${HOME}/.rustup`,
      CARGO_HOME: '/home/sandbox/.cargo',
      PYENV_ROOT: `${HOME}/.pyenv`,
    })
  })

  test('are not set for toolchains that are not shown', () => {
    expect(planIn(world({}, [`${HOME}/.pyenv/shims`])).env.map(({ name }) => name)).not.toContain('PYENV_ROOT')
  })
})

test('A command that the sandbox does not show is told with the flag that shows it', () => {
  const plan = planIn(world({ [`${HOME}/tools/lint`]: 'file' }, [`${HOME}/tools`], 'lint'))
  expect(plan.warnings).toEqual([`${HOME}/tools/lint is not visible inside; to show it: --ro ${HOME}/tools`])
})

test.each<readonly [string, Readonly<Record<string, string>>, string]>([
  ['its installation, where it lies in a bin', { '/srv/tools/bin/lint': 'file' }, '--ro /srv/tools'],
  [
    'one for its name and its file',
    { '/srv/tools/bin/lint': '-> ../lib/lint/run', '/srv/tools/lib/lint/run': 'file' },
    '--ro /srv/tools',
  ],
])('The flag of a hidden command shows %s', (_, tree, flag) => {
  const plan = planIn(world(tree, ['/srv/tools/bin'], 'lint'))
  expect(plan.warnings).toEqual([`/srv/tools/bin/lint is not visible inside; to show it: ${flag}`])
})

test('Every kind of toolchain is recognised by its own pattern', () => {
  for (const { name, pattern } of TOOLCHAINS) {
    const path = pattern.startsWith('/') ? pattern : `/base/${pattern}`
    expect(toolchainAt(`${path.replaceAll('*', 'x')}/bin/tool`)?.kind.name).toBe(name)
  }
})

describe('A link of the project', () => {
  const CWD = `${HOME}/project`
  const victim: Tree = { '/data/victim/.opam/bin/t': 'file', [`${HOME}/x/.pyenv/bin/t`]: 'file' }
  const shown = (tree: Tree, entries: string[], command = 'true') =>
    toolchains(world({ ...victim, ...tree }, entries, command))

  test.each<[title: string, tree: Tree, entries: string[], command: string]>([
    ['in PATH', { [`${CWD}/bin`]: '-> /data/victim/.opam/bin' }, [`${CWD}/bin`], 'true'],
    ['above an entry of PATH', { [`${CWD}/venv`]: '-> /data/victim/.opam' }, [`${CWD}/venv/bin`], 'true'],
    ['that is the command', { [`${CWD}/configure`]: '-> /data/victim/.opam/bin/t' }, [], './configure'],
    ['found by PATH', { [`${CWD}/bin/t`]: '-> /data/victim/.opam/bin/t' }, [`${CWD}/bin`], 't'],
    [
      'to a place that is only called like an interpreter',
      { [`${CWD}/bin`]: `-> ${HOME}/x/.pyenv/bin` },
      [`${CWD}/bin`],
      'true',
    ],
  ])('shows nothing outside of it: %s', (_title, tree, entries, command) => {
    expect(shown(tree, entries, command)).toEqual([])
  })

  test('is no worse than one elsewhere, which is followed', () => {
    expect(shown({ '/srv/bin': '-> /data/victim/.opam/bin' }, ['/srv/bin'])).toEqual([
      'toolchain opam: /data/victim/.opam',
    ])
  })
})
