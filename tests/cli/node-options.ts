/**
 * No word, variable or file of a caller is an option of the node that runs the program. The attack: a command in a sandbox leaves a
 * file in the workspace, and the next ordinary call has a word or a variable that makes node load it on the host.
 */
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { temporaryDirectory } from '../support/directory.ts'
import { unmetNeeds } from '../support/needs.ts'
import { newerNodes } from '../support/nodes.ts'
import { type PackageCopy, packageCopy, takeScripts } from '../support/package.ts'

/** Each payload leaves a file named after its attack. `works`: major versions of node that the control shows to obey it behind the name of a script. */
type Attack = readonly [name: string, text: string, works: readonly number[]]

const EVERY = [20, 22, 24] as const
const payload = (work: string, name: string): string => join(work, `payload-${name}.cjs`)

/** WORK is the workspace. */
const WORDS: readonly Attack[] = [
  ['env-file', '--env-file=WORK/env-file.env', EVERY],
  ['env-file-two', '--env-file WORK/env-file-two.env', EVERY],
  ['env-file-if-exists', '--env-file-if-exists=WORK/env-file-if-exists.env', EVERY],
  ['config-file', '--experimental-config-file=WORK/config-file.json', [22, 24]],
  ['default-config-file', '--experimental-default-config-file', [22, 24]],
  ['require', '--require=WORK/payload-require.cjs', []],
  ['require-short', '-r WORK/payload-require-short.cjs', []],
  ['import', '--import=WORK/payload-import.cjs', []],
  ['loader', '--experimental-loader=WORK/payload-loader.cjs', []],
]

const VARIABLES: readonly Attack[] = [
  ['options-require', 'NODE_OPTIONS=--require=WORK/payload-options-require.cjs', EVERY],
  ['options-import', 'NODE_OPTIONS=--import=WORK/payload-options-import.cjs', EVERY],
  ['coverage', 'NODE_V8_COVERAGE=WORK/ran-coverage', EVERY],
  ['redirect', 'NODE_REDIRECT_WARNINGS=WORK/ran-redirect NODE_PENDING_DEPRECATION=1', []],
]

const wordsOf = ([, text]: Attack): readonly string[] => text.replaceAll('WORK', site.work).split(' ')
const variablesOf = (attack: Attack): Readonly<Record<string, string>> =>
  Object.fromEntries(wordsOf(attack).map((word) => word.split(/=(.*)/).slice(0, 2)))

const site: { home: string; work: string } = { home: '', work: '' }

/** Names that the sandbox left in the workspace. */
function plant(work: string): void {
  for (const [name] of [...WORDS, ...VARIABLES]) {
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

/** As words of a command, of a verb, and of an unknown verb. Each gets all words together: a payload leaves one file. */
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

/** In these positions these nodes take no word for an option. The control: alone, node takes the words for options. */
export function describeNodeOptions({ nodes, positions }: Tried): void {
  describe.each(nodes)('node $major', ({ major, file }) => {
    test.each(WORDS)('given the words of %s behind a script: the control', async (...attack) => {
      await call(file, ['script.cjs', ...wordsOf(attack)])
      expect(ran()).toEqual(attack[2].includes(major) ? [`ran-${attack[0]}`] : [])
    })

    test.each(VARIABLES)('given the variables of %s: the control', async (...attack) => {
      await call(file, ['script.cjs'], variablesOf(attack))
      expect(ran()).toEqual(attack[2].includes(major) ? [`ran-${attack[0]}`] : [])
    })
  })

  describe.each(WAYS)('by %s', (way) => {
    beforeAll(async () => {
      built.package = await packageCopy()
      if (way !== WAYS[0]) takeScripts(built.package.root)
    })
    afterAll(() => built.package?.remove())

    const program = (name = 'llm-do'): string => join(built.package?.root ?? '', 'bin', name)
    const allWords = () => WORDS.flatMap(wordsOf)
    const allVariables = () => Object.assign({}, ...VARIABLES.map(variablesOf))

    describe.each(nodes)('node $major', ({ file }) => {
      beforeEach(() => built.package?.recordNode(file))

      test.each(positions)('takes no word %s for an option', async (_, at) => {
        await call(program(), at(allWords()), allVariables())
        expect(ran()).toEqual([])
      })

      test('takes no value of an option for an option of node', async () => {
        const values = WORDS.filter(([, , works]) => works.length > 0).map(wordsOf)
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
