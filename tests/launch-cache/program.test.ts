/** A plan that programs share is the plan that each of them would get alone. */
import { describe, expect, test } from 'vitest'
import { KEY_ANY_PROGRAM, TOOLCHAIN_WORDS } from '../../src/contract.ts'
import { guardsOfProgram, sharesPlan } from '../../src/launch-cache/program.ts'
import { TOOLCHAINS } from '../../src/plan/toolchain.ts'
import { factsOf, PLAIN_TREE, planIn, type Tree, type World, zone } from '../plan/world.ts'

const HOME = '/home/ann'
const TREE: Tree = {
  ...PLAIN_TREE,
  '/usr/bin/ls': 'file',
  '/usr/bin/vi': '-> /etc/alternatives/vi',
  '/etc/alternatives/vi': '-> /usr/bin/vim',
  '/usr/bin/vim': 'file',
  '/usr/bin/tool.wasm': 'file',
  '/usr/bin/micromamba': 'file',
  '/usr/local/bin/node': `-> ${HOME}/.nvm/versions/node/v20/bin/node`,
  [`${HOME}/.nvm/versions/node/v20/bin/node`]: 'file',
  '/usr/local/bin/opt': '-> /opt/tool/bin/tool',
  '/opt/tool/bin/tool': 'file',
  '/usr/local/cargo/bin/cargo': 'file',
  '/usr/local/bin/cargo2': '-> ../cargo/bin/cargo',
  '/usr/local/bin/loop': '-> loop',
  '/usr/local/bin/nowhere': '-> /no/such/file',
  [`${HOME}/.volta/bin/shim`]: '-> /usr/bin/vim',
  [`${HOME}/project/run.sh`]: 'file',
  [`${HOME}/project/python`]: `-> ${HOME}/.pyenv/versions/3/bin/python`,
  [`${HOME}/.pyenv/versions/3/bin/python`]: 'file',
  [`${HOME}/other/tool`]: 'file',
}

const worldOf = (program: string, path: readonly string[] = ['/usr/local/bin', '/usr/bin', '/bin']): World => ({
  tree: TREE,
  request: { command: [program], path, cwd: `${HOME}/project` },
})

function shares(world: World): boolean {
  const { request, facts } = factsOf(world)
  return sharesPlan(request, facts.paths)
}

interface Lookup {
  readonly program: string
  readonly path?: readonly string[]
}

const SHARING: readonly Lookup[] = [
  { program: 'true' },
  { program: 'ls' },
  { program: 'vi' },
  { program: 'loop' },
  { program: 'nowhere' },
  { program: 'no-such-program' },
  { program: '/bin/ls' },
  { program: '/usr/bin/vi' },
  { program: './run.sh' },
  { program: 'run.sh', path: [`${HOME}/project`, '/usr/bin'] },
  { program: 'run.sh', path: ['.', '', '/usr/bin'] },
  { program: '/no/such/file' },
  { program: '/usr/bin' },
]

const OWN: readonly Lookup[] = [
  { program: 'node' },
  { program: 'opt' },
  { program: 'cargo2' },
  { program: 'micromamba' },
  { program: './python' },
  { program: `${HOME}/.volta/bin/shim` },
  { program: 'shim', path: [`${HOME}/.volta/bin`, '/usr/bin'] },
  { program: 'tool.wasm' },
  { program: '' },
  { program: '../other/tool' },
  { program: 'run.sh/' },
  { program: 'ls', path: ['/usr/local/../bin'] },
]

describe('the plan of a program', () => {
  test.each(SHARING)('of $program with PATH $path is that of no program at all', ({ program, path }) => {
    const world = worldOf(program, path)
    const { request } = factsOf(world)
    const none = { ...world, request: { ...request, command: [] } }
    expect(shares(world)).toBe(true)
    expect(planIn(world)).toEqual(planIn(none))
  })

  test.each(OWN)('of $program with PATH $path is its own', ({ program, path }) => {
    expect(shares(worldOf(program, path))).toBe(false)
  })

  test('differs where a link leads to a toolchain: the control', () => {
    expect(planIn(worldOf('node')).zones).not.toEqual(planIn(worldOf('ls')).zones)
  })

  test('does not differ by whether the name is known, whatever else the policy shows', () => {
    const policy = { zones: [zone({ mode: 'rw', hostPath: `${HOME}/project` })], env: { inherit: ['A*'], set: {} } }
    const [known, unknown] = ['ls', 'nothing'].map((program) => planIn({ ...worldOf(program), policy }))
    expect(known).toEqual(unknown)
  })
})

describe('what a shared plan was made from', () => {
  const guardsIn = (program: string) => {
    const { policy, request, facts } = factsOf(worldOf(program))
    return guardsOfProgram(policy, request, facts.paths)
  }

  test('is the same for each program, and no place of any', () => {
    const { program, paths } = guardsIn('ls')
    expect(program).toBe(KEY_ANY_PROGRAM)
    expect(Object.keys(paths)).not.toContain('/usr/bin/ls')
    expect(Object.keys(paths).sort()).toEqual(Object.keys(guardsIn('no-such-program').paths).sort())
  })

  test('of a plan of its own has the places of its program', () => {
    const { program, paths } = guardsIn('node')
    expect(program).toBe('node')
    expect(Object.keys(paths)).toContain('/usr/local/bin/node')
  })
})

test('each pattern of a toolchain holds a word of those that the client looks for', () => {
  const words = new Set<string>(TOOLCHAIN_WORDS)
  const missed = TOOLCHAINS.filter(({ pattern }) => !pattern.split('/').some((word) => words.has(word)))
  expect(missed.map(({ pattern }) => pattern)).toEqual([])
})
