/**
 * The house rules that a compiler does not know: imports go down the floors, only edge files touch the world, nothing goes
 * round in circles, and nothing of the machine it was written on stays in the repository.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { transformSync } from 'esbuild'
import { describe, expect, test } from 'vitest'
import { ERROR_CODES } from '../src/error.ts'
import { BACKEND_NAMES } from '../src/policy/values.ts'

const ROOT = join(import.meta.dirname, '..')

/** Top to bottom; a room imports from its own floor's room and from the floors below it. docs/internals/architecture.md tells why. */
const FLOORS: readonly (readonly string[])[] = [
  ['cli', 'index'],
  ['fleet', 'mcp'],
  ['core'],
  ['worker', 'pool', 'doctor', 'executor', 'learn'],
  ['library'],
  ['run'],
  ['report', 'launch-cache'],
  ['backends'],
  ['cow', 'terminator'],
  ['plan'],
  ['host'],
  ['policy', 'cgroup'],
  ['seccomp', 'network'],
  ['config', 'os'],
  ['text'],
  ['error'],
  ['contract'],
]

/**
 * The parts outside of the core. `doors` are the only files of the core that the part may import; `from` names the files that may import
 * the part. A reader of the core need not read it.
 */
const FENCES: readonly { readonly part: string; readonly doors: readonly string[]; readonly from: RegExp }[] = [
  { part: 'fleet', doors: ['core.ts'], from: /^(?:index\.ts$|cli\/commands\/)/ },
  {
    part: 'mcp',
    doors: ['core.ts', 'config/json-schema.ts', 'config/schema-problems.ts'],
    from: /^cli\/commands\/mcp\.ts$/,
  },
  { part: 'terminator', doors: ['network/termination.ts', 'os/passed-signals.ts'], from: /^$/ },
  {
    part: 'backends/docker',
    doors: ['backends/row-kit.ts', 'backends/run-kit.ts'],
    from: /^backends\/index\.ts$|^cli\/commands\/(?:images|prune)\.ts$/,
  },
  { part: 'backends/wasm', doors: ['backends/row-kit.ts', 'backends/run-kit.ts'], from: /^backends\/index\.ts$/ },
]

/**
 * The parts of src/backends, top to bottom: the table, the backends, the doors for those outside of the core, the native chain that others
 * may run inside, and the files that all share. No backend imports another one: its folder can be taken out.
 */
const backendFloorOf = (path: string): number => {
  const [, part = '', isFolder] = path.split('/')
  if (isFolder === undefined) return part === 'index.ts' ? 0 : part.endsWith('-kit.ts') ? 2 : SHARED
  return part === 'namespace' ? 3 : 1
}
const SHARED = 4
const backendPartOf = (path: string): string => path.split('/').slice(0, 2).join('/')

/** Modules for edge files only. */
const EDGE_MODULES = [
  ...['fs', 'fs/promises', 'child_process', 'net', 'http', 'https', 'http2', 'tls', 'dgram', 'dns', 'dns/promises'],
  ...['worker_threads', 'timers', 'timers/promises', 'tty', 'readline', 'readline/promises'],
].map((name) => `node:${name}`)
const EDGE_PACKAGES = ['execa', 'tmp-promise', 'pidusage']

/** Words for edge files only: the clock, chance, the environment and the process itself. */
const EDGE_WORDS =
  /\bprocess\.(?:env|argv|cwd|exit|kill|on|once|hrtime|stdin|stdout|stderr|getuid|getgid|umask|exitCode)\b|\bDate\.now\b|\bnew Date\(\)|\bperformance\.now\b|\bMath\.random\b|\bset(?:Timeout|Interval|Immediate)\(|\b(?:homedir|tmpdir|hostname|userInfo|fetch)\(|\brandom(?:Bytes|UUID|Int|FillSync)\b|\bgetRandomValues\b/

interface Source {
  /** Path below src. */
  readonly path: string
  readonly text: string
}

const sources: readonly Source[] = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .toSorted()
  .map((path) => ({ path, text: readFileSync(join(ROOT, 'src', path), 'utf8') }))

const roomOf = (path: string): string => path.split('/')[0].replace(/\.ts$/, '')
const floorOf = (room: string): number => FLOORS.findIndex((floor) => floor.includes(room))

/** Module names in import and export declarations, types included, and in import(). */
function importsOf(text: string): readonly string[] {
  const declared = text.matchAll(
    /^(?:import|export)\b[^'"]*?\bfrom\s*['"]([^'"]+)['"]|^import\s*['"]([^'"]+)['"]|^}\s*from\s*['"]([^'"]+)['"]/gm,
  )
  const called = text.matchAll(/\bimport\(\s*['"]([^'"]+)['"]/g)
  return [...declared, ...called].map((match) => match.slice(1).find((name) => name !== undefined) ?? '')
}

/** The code without comments and types: what is left when it runs. */
const codeOf = (text: string): string =>
  transformSync(text, {
    loader: 'ts',
    target: 'esnext',
    legalComments: 'none',
    tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } },
  }).code

/** The doc comment that opens a file. */
const headOf = (text: string): string => /^(?:#![^\n]*\n)?\/\*\*[\s\S]*?\*\//.exec(text)?.[0] ?? ''
const isEdge = (text: string): boolean => /^ \* Edge: \S/m.test(headOf(text))

/** Why code may not be outside an edge file; empty when it may. */
function effectsOf(text: string): readonly string[] {
  const code = codeOf(text)
  const modules = importsOf(code).filter((name) => [...EDGE_MODULES, ...EDGE_PACKAGES].includes(name))
  const words = [...code.matchAll(new RegExp(EDGE_WORDS, 'g'))].map(([word]) => word)
  return [...new Set([...modules, ...words])]
}

/** Files below src that a file imports. */
const neighboursOf = ({ path, text }: Source): readonly string[] =>
  importsOf(text)
    .filter((name) => name.startsWith('.'))
    .map((name) => relative(join(ROOT, 'src'), join(ROOT, 'src', dirname(path), name)))

/** `path -> target` for every import that goes up or sideways. */
const climbsOf = (source: Source): readonly string[] =>
  neighboursOf(source)
    .filter((target) => roomOf(target) !== roomOf(source.path))
    .filter((target) => floorOf(roomOf(target)) <= floorOf(roomOf(source.path)))
    .map((target) => `${source.path} -> ${target}`)

/** The same inside src/backends. */
const backendClimbsOf = (source: Source): readonly string[] =>
  neighboursOf(source)
    .filter((target) => [source.path, target].every((path) => roomOf(path) === 'backends'))
    .filter((target) => backendPartOf(target) !== backendPartOf(source.path))
    .filter((target) => {
      const [from, to] = [backendFloorOf(source.path), backendFloorOf(target)]
      // The shared files are one floor, and know each other.
      return to < from || (to === from && to !== SHARED)
    })
    .map((target) => `${source.path} -> ${target}`)

/** `path -> target` for every import that leaves a fenced part by another way than its doors, or enters it from elsewhere. */
const fenceBreaksOf = (source: Source): readonly string[] =>
  neighboursOf(source)
    .filter((target) =>
      FENCES.some(({ part, doors, from }) => {
        const [isInside, leadsInside] = [source.path, target].map((path) => path.startsWith(`${part}/`))
        if (isInside === leadsInside) return false
        return isInside === true ? !doors.includes(target) : !from.test(source.path)
      }),
    )
    .map((target) => `${source.path} -> ${target}`)

/** Comparisons with the name of a backend. */
const NAMED = new RegExp(`\\bbackend\\b[\\w.]* (?:===|!==) '(?:${BACKEND_NAMES.join('|')})'`)

/** One cycle of a graph as a list of nodes, or undefined. */
function cycleIn(graph: ReadonlyMap<string, readonly string[]>): readonly string[] | undefined {
  const done = new Set<string>()
  const walk = (node: string, trail: readonly string[]): readonly string[] | undefined => {
    if (trail.includes(node)) return [...trail.slice(trail.indexOf(node)), node]
    if (done.has(node)) return undefined
    const found = (graph.get(node) ?? [])
      .map((next) => walk(next, [...trail, node]))
      .find((cycle) => cycle !== undefined)
    done.add(node)
    return found
  }
  return [...graph.keys()].map((node) => walk(node, [])).find((cycle) => cycle !== undefined)
}

/** Every file of the repository that git knows or would add. */
const repositoryFiles = (): readonly string[] =>
  execFileSync('git', ['-c', 'safe.directory=*', 'ls-files', '--cached', '--others', '--exclude-standard', '-z'], {
    cwd: ROOT,
    encoding: 'utf8',
  })
    .split('\0')
    .filter((path) => path !== '' && existsSync(join(ROOT, path)))

describe('the rules themselves', () => {
  test.each([
    { text: "import { a } from './a.ts'", names: ['./a.ts'] },
    { text: "import type { A } from '../b/a.ts'", names: ['../b/a.ts'] },
    { text: "import {\n  a,\n  type B,\n} from './a.ts'\nimport './c.ts'", names: ['./a.ts', './c.ts'] },
    { text: "export { a } from './a.ts'\nexport * from './b.ts'", names: ['./a.ts', './b.ts'] },
    { text: "const a = await import('./a.ts')", names: ['./a.ts'] },
    { text: "import { a } from './a.ts'\nexport const b = from('x')", names: ['./a.ts'] },
  ])('find the imports of $text', ({ text, names }) => {
    expect(importsOf(text)).toEqual(names)
  })

  test.each([
    { text: "import { readFile } from 'node:fs/promises'\nreadFile('x')", effects: ['node:fs/promises'] },
    { text: "import type { Stats } from 'node:fs'\nexport type A = Stats", effects: [] },
    { text: "import { createHash } from 'node:crypto'\nexport const a = createHash('sha256')", effects: [] },
    { text: "import { randomBytes } from 'node:crypto'", effects: ['randomBytes'] },
    { text: '// Date.now is the clock\nexport const a = 1', effects: [] },
    { text: 'export const a = Date.now() + process.env.A', effects: ['Date.now', 'process.env'] },
  ])('find the effects of $text', ({ text, effects }) => {
    expect(effectsOf(text)).toEqual(effects)
  })

  test('find an import that goes up, and not one that goes down', () => {
    const up = { path: 'policy/a.ts', text: "import { b } from '../plan/b.ts'\nimport { c } from '../text/c.ts'" }
    expect(climbsOf(up)).toEqual(['policy/a.ts -> plan/b.ts'])
  })

  test('find an import of one backend by another', () => {
    const sideways = { path: 'backends/docker/a.ts', text: "import { b } from '../wasm/b.ts'" }
    const up = { path: 'backends/capture.ts', text: "import { b } from './wasm/b.ts'" }
    const down = { path: 'backends/wasm/a.ts', text: "import { b } from '../namespace/b.ts'\nimport '../capture.ts'" }
    expect([sideways, up, down].flatMap(backendClimbsOf)).toEqual([
      'backends/docker/a.ts -> backends/wasm/b.ts',
      'backends/capture.ts -> backends/wasm/b.ts',
    ])
  })

  test('find an import past the doors of a fenced part, out of it and into it', () => {
    const out = { path: 'fleet/a.ts', text: "import { b } from '../core.ts'\nimport type { C } from '../os/c.ts'" }
    const into = { path: 'run/a.ts', text: "const { b } = await import('../mcp/b.ts')" }
    const fine = { path: 'fleet/server/a.ts', text: "import { b } from '../b.ts'\nimport { c } from '../../core.ts'" }
    expect([out, into, fine].flatMap(fenceBreaksOf)).toEqual(['fleet/a.ts -> os/c.ts', 'run/a.ts -> mcp/b.ts'])
  })

  test('find a comparison with the name of a backend', () => {
    expect("if (plan.backend !== 'docker') return".match(NAMED)).toHaveLength(1)
    expect("backend: 'docker', program === 'docker'".match(NAMED)).toBeNull()
  })

  test('find a cycle', () => {
    const graph = { a: ['b'], b: ['c'], c: ['b'] }
    expect(cycleIn(new Map(Object.entries(graph)))).toEqual(['b', 'c', 'b'])
  })

  test('call a file an edge by the line in its head comment only', () => {
    expect(isEdge('/**\n * Reads.\n * Edge: the file system.\n */\n')).toBe(true)
    expect(isEdge('/** Reads. */\n/**\n * Edge: the file system.\n */\n')).toBe(false)
  })
})

test('every room has its floor', () => {
  expect(sources.map(({ path }) => roomOf(path)).filter((room) => floorOf(room) === -1)).toEqual([])
})

test('imports go down the floors only', () => {
  expect(sources.flatMap(climbsOf)).toEqual([])
})

test('the core and the parts outside of it know each other by the doors only', () => {
  expect(sources.flatMap(fenceBreaksOf)).toEqual([])
})

test('every name of a door is used outside', () => {
  const namesIn = (text: string, from: RegExp): readonly string[] =>
    [...text.matchAll(/^(?:import|export)(?: type)? \{([^}]*)\} from '([^']+)'/gm)]
      .filter(([, , source = '']) => from.test(source))
      .flatMap(([, list = '']) => list.split(',').map((name) => name.trim().replace(/^type /, '')))
      .filter((name) => name !== '')
  const unused = ['core.ts', 'backends/row-kit.ts', 'backends/run-kit.ts'].flatMap((door) => {
    const used = new Set(sources.flatMap(({ text }) => namesIn(text, new RegExp(`/${door.split('/').at(-1)}$`))))
    const { text } = sources.find(({ path }) => path === door) as Source
    return namesIn(text, /./).filter((name) => !used.has(name))
  })
  expect(unused).toEqual([])
})

test('no backend imports another one', () => {
  expect(sources.flatMap(backendClimbsOf)).toEqual([])
})

test('nothing outside a backend compares its name: what differs is a question to its row', () => {
  // A policy that names wasm asks for what only WASI commands need, and policies know no rows.
  const reasoned = ['policy/needs.ts']
  const naming = sources.filter(({ path }) => !reasoned.includes(path)).filter(({ text }) => NAMED.test(text))
  expect(naming.map(({ path }) => path)).toEqual([])
})

test('imports do not go in circles', () => {
  expect(cycleIn(new Map(sources.map((source) => [source.path, neighboursOf(source)])))).toBeUndefined()
})

test('only edge files touch files, processes, sockets, the clock, chance and the environment', () => {
  const touching = sources
    .filter(({ text }) => !isEdge(text))
    .map(({ path, text }) => ({ path, effects: effectsOf(text) }))
  expect(touching.filter(({ effects }) => effects.length > 0)).toEqual([])
})

test('there is no state at the top of a file', () => {
  expect(sources.filter(({ text }) => /^(?:export )?(?:let|var) /m.test(text)).map(({ path }) => path)).toEqual([])
})

test('every error code that is thrown is in the catalogue', () => {
  const thrown = sources.flatMap(({ text }) =>
    [...text.matchAll(/new SandboxError\(\s*'([A-Z_]+)'/g)].map(([, code]) => code),
  )
  expect(thrown.filter((code) => !(code in ERROR_CODES))).toEqual([])
})

test('every room has a room of tests', () => {
  const isTested = (room: string): boolean =>
    existsSync(join(ROOT, 'tests', room)) &&
    readdirSync(join(ROOT, 'tests', room), { recursive: true, encoding: 'utf8' }).some((path) =>
      path.endsWith('.test.ts'),
    )
  const rooms = new Set(sources.filter(({ path }) => path.includes('/')).map(({ path }) => roomOf(path)))
  const untested = [...rooms].filter((room) => !isTested(room))
  // Types alone need no test.
  const isRunning = (room: string) =>
    sources.some(({ path, text }) => roomOf(path) === room && codeOf(text).trim() !== '')
  expect(untested.filter(isRunning)).toEqual([])
})

describe('a file of system tests', () => {
  const names = repositoryFiles().filter((path) => path.startsWith('tests/') && path.includes('.system.'))

  test('says its kind in its name: NAME[.user][.deep].system.test.ts', () => {
    const odd = names.filter((path) => !/^[^.]+(?:\.user)?(?:\.deep)?\.system\.test\.ts$/.test(path))
    expect(odd).toEqual([])
  })

  test('that tries several users runs as each of them', () => {
    const calling = names.filter((path) => /\bcallers\(\)/.test(readFileSync(join(ROOT, path), 'utf8')))
    expect(calling.length).toBeGreaterThan(0)
    expect(calling.filter((path) => !path.includes('.user.'))).toEqual([])
  })
})

describe('the repository', () => {
  /** Written so that this file does not contain what it looks for. */
  const homes = new RegExp(['work', 'root'].map((name) => String.raw`(?<![\w.~}-])/${name}/[.\w]`).join('|'))

  test('names no directory of the machine it was written on', () => {
    const isOurs = (path: string): boolean => /^(?:src|native|scripts|bench|docs|profiles|[^/]*$)/.test(path)
    const naming = repositoryFiles()
      .filter(isOurs)
      .flatMap((path) => {
        const lines = readFileSync(join(ROOT, path), 'utf8').split('\n')
        return lines.flatMap((line, index) => (homes.test(line) ? [`${path}:${index + 1}: ${line.trim()}`] : []))
      })
    expect(naming).toEqual([])
  })

  test('locks packages by name and hash, not by where they come from', () => {
    const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, { resolved?: string; integrity?: string }>
    }
    const packages = Object.entries(lock.packages).filter(([path]) => path !== '')
    expect(packages.filter(([, { resolved }]) => resolved !== undefined).map(([path]) => path)).toEqual([])
    expect(packages.filter(([, { integrity }]) => integrity === undefined).map(([path]) => path)).toEqual([])
  })

  test('pins every package it depends on to one version', () => {
    const { dependencies, devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Record<
      string,
      Record<string, string>
    >
    const loose = Object.entries({ ...dependencies, ...devDependencies }).filter(
      ([, version]) => !/^\d+\.\d+\.\d+$/.test(version),
    )
    expect(loose).toEqual([])
  })
})
