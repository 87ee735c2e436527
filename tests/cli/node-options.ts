/**
 * No word, variable or file of a caller is an option of the node that runs the program. The attack: a command in a sandbox leaves a
 * file in the workspace, and the next ordinary call has a word or a variable that makes node load it on the host.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { temporaryDirectory } from '../support/directory.ts'
import { unmetNeeds } from '../support/needs.ts'
import { newerNodes } from '../support/nodes.ts'
import { type PackageCopy, packageCopy } from '../support/package.ts'

/** Each payload leaves a file of its own name. */
interface Attack {
  readonly name: string
  /** Words, below the workspace. */
  readonly words?: (work: string) => readonly string[]
  readonly env?: (work: string) => Readonly<Record<string, string>>
  /** Major versions of node that the control has to show falling for it, given behind the name of a script. */
  readonly works: readonly number[]
}

const EVERY = [20, 22, 24] as const
const payload = (work: string, name: string): string => join(work, `payload-${name}.cjs`)

const WORDS: readonly Attack[] = [
  { name: 'env-file', words: (work) => [`--env-file=${work}/env-file.env`], works: EVERY },
  { name: 'env-file-two', words: (work) => ['--env-file', `${work}/env-file-two.env`], works: EVERY },
  {
    name: 'env-file-if-exists',
    words: (work) => [`--env-file-if-exists=${work}/env-file-if-exists.env`],
    works: EVERY,
  },
  { name: 'config-file', words: (work) => [`--experimental-config-file=${work}/config-file.json`], works: [22, 24] },
  { name: 'default-config-file', words: () => ['--experimental-default-config-file'], works: [22, 24] },
  { name: 'require', words: (work) => [`--require=${payload(work, 'require')}`], works: [] },
  { name: 'require-short', words: (work) => ['-r', payload(work, 'require-short')], works: [] },
  { name: 'import', words: (work) => [`--import=${payload(work, 'import')}`], works: [] },
  { name: 'loader', words: (work) => [`--experimental-loader=${payload(work, 'loader')}`], works: [] },
]

const VARIABLES: readonly Attack[] = [
  {
    name: 'options-require',
    env: (work) => ({ NODE_OPTIONS: `--require=${payload(work, 'options-require')}` }),
    works: EVERY,
  },
  {
    name: 'options-import',
    env: (work) => ({ NODE_OPTIONS: `--import=${payload(work, 'options-import')}` }),
    works: EVERY,
  },
  { name: 'coverage', env: (work) => ({ NODE_V8_COVERAGE: join(work, 'ran-coverage') }), works: EVERY },
  {
    name: 'redirect',
    env: (work) => ({ NODE_REDIRECT_WARNINGS: join(work, 'ran-redirect'), NODE_PENDING_DEPRECATION: '1' }),
    works: [],
  },
]

const site: { home: string; work: string } = { home: '', work: '' }

/** Names that the sandbox left in the workspace. */
function plant(work: string): void {
  for (const { name } of [...WORDS, ...VARIABLES]) {
    const ran = JSON.stringify(join(work, `ran-${name}`))
    writeFileSync(payload(work, name), `require('node:fs').writeFileSync(${ran}, '')\n`)
    writeFileSync(join(work, `${name}.env`), `NODE_OPTIONS=--require=${payload(work, name)}\n`)
    const config = { nodeOptions: { import: [payload(work, name)] } }
    writeFileSync(join(work, `${name}.json`), JSON.stringify(config))
  }
  const config = { nodeOptions: { import: [payload(work, 'default-config-file')] } }
  writeFileSync(join(work, 'node.config.json'), JSON.stringify(config))
  writeFileSync(join(work, 'script.cjs'), '')
}

const ran = (): readonly string[] => readdirSync(site.work).filter((name) => name.startsWith('ran-'))

beforeEach(async () => {
  site.home = await temporaryDirectory()
  site.work = join(site.home, 'work')
  mkdirSync(site.work)
  plant(site.work)
})

async function call(file: string, words: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const { exitCode, stdout, stderr } = await execa(file, words, {
    cwd: site.work,
    env: { PATH: process.env['PATH'], HOME: site.home, ...env },
    extendEnv: false,
    reject: false,
    stdin: 'ignore',
  })
  return { status: exitCode, stdout, stderr }
}

export const NODES = [
  { major: Number(process.versions.node.split('.')[0]), file: process.execPath },
  ...newerNodes(),
].filter(({ major }, at, all) => all.findIndex((other) => other.major === major) === at)

const WAYS = ['the client', 'the script of an install without scripts'] as const
const built: { package?: PackageCopy } = {}

/** As words of a command, of a verb, and of no verb. Each gets all words at once: a payload leaves a file of its own. */
export const POSITIONS: readonly (readonly [string, (words: readonly string[]) => readonly string[]])[] = [
  ['of a command behind --', (words) => ['exec', '--', 'true', ...words]],
  ['of a command', (words) => ['exec', 'true', ...words]],
  ['of a planned command', (words) => ['exec', '--plan', 'true', ...words]],
  ['before the command', (words) => ['exec', ...words, '--', 'true']],
  ['of no verb', (words) => words],
  ['of an unknown verb', (words) => ['unknown', ...words]],
  ...['doctor', 'ps', 'kill', 'prune', 'images', 'init', '--version', '--help'].map(
    (verb) => [`of ${verb}`, (words: readonly string[]) => [verb, ...words]] as const,
  ),
  ...[
    ['workers', 'check'],
    ['workers', 'show'],
    ['profiles', 'show'],
    ['pool', 'status'],
    ['pool', 'start'],
    ['cache', 'clear'],
    ['audit', 'verify'],
    ['completion', 'bash'],
  ].map((verb) => [`of ${verb.join(' ')}`, (words: readonly string[]) => [...verb, ...words]] as const),
]

interface Tried {
  readonly nodes: typeof NODES
  readonly positions: typeof POSITIONS
}

/** No word is an option in these positions, by these nodes; and the control: by itself node takes the words for options. */
export function describeNodeOptions({ nodes, positions }: Tried): void {
  describe.each(nodes)('node $major', ({ major, file }) => {
    test.each(WORDS)('given the words of $name behind a script: the control', async ({ name, words, works }) => {
      await call(file, ['script.cjs', ...(words?.(site.work) ?? [])])
      expect(ran()).toEqual(works.includes(major) ? [`ran-${name}`] : [])
    })

    test.each(VARIABLES)('given the variables of $name: the control', async ({ name, env, works }) => {
      await call(file, ['script.cjs'], env?.(site.work))
      expect(ran()).toEqual(works.includes(major) ? [`ran-${name}`] : [])
    })
  })

  describe.each(WAYS)('by %s', (way) => {
    beforeAll(async () => {
      built.package = await packageCopy()
      if (way !== WAYS[0]) execFileSync(process.execPath, [join(built.package.root, 'scripts/commands.mjs')])
    })
    afterAll(() => built.package?.remove())

    const program = (name = 'llm-do'): string => join(built.package?.root ?? '', 'bin', name)
    const allWords = () => WORDS.flatMap(({ words }) => words?.(site.work) ?? [])
    const allVariables = () => Object.assign({}, ...VARIABLES.map(({ env }) => env?.(site.work)))

    describe.each(nodes)('node $major', ({ file }) => {
      beforeEach(() => built.package?.recordNode(file))

      test.each(positions)('takes no word %s for an option', async (_, at) => {
        await call(program(), at(allWords()), allVariables())
        expect(ran()).toEqual([])
      })

      test('takes no value of an option for an option of node', async () => {
        const values = WORDS.filter(({ works }) => works.length > 0).map(({ words }) => words?.(site.work) ?? [])
        const flags = ['--profile', '--workdir', '--rw', '--worker', '--audit']
        const given = flags.flatMap((flag) => values.flatMap((words) => [flag, ...words]))
        await call(program(), ['exec', ...given, '--', 'true'])
        expect(ran()).toEqual([])
      })

      test('takes no word for an option when the name of the command is the verb', async () => {
        await call(program('llm-do-exec'), ['true', ...allWords()], allVariables())
        expect(ran()).toEqual([])
      })
    })

    test('nothing is read from the directory where the caller stands', async () => {
      writeFileSync(join(site.work, '.env'), `NODE_OPTIONS=--require=${payload(site.work, 'env-file')}\n`)
      await call(program(), ['profiles'])
      expect(ran()).toEqual([])
    })

    const canRun = unmetNeeds(['userns']).length === 0
    describe.skipIf(!canRun)('what runs', () => {
      beforeEach(() => built.package?.recordNode(process.execPath))

      test('gets every word as it was written', async () => {
        const words = [...allWords(), '', ' ', '=', 'a=b', 'new\nline', '--', '-e', "it's", '$HOME', '\\']
        const run = await call(program(), ['exec', '--', 'printf', '%s|', ...words])
        expect(run).toMatchObject({ status: 0, stdout: words.map((word) => `${word}|`).join('') })
      })
    })
  })
}
