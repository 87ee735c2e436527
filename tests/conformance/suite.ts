/** One suite for every backend. */
import { chownSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, onTestFailed, test } from 'vitest'
import type { PolicyLayer } from '../../src/policy/layer.ts'
import { exec } from '../../src/run/exec.ts'
import { newDirectory, temporaryDirectory } from '../support/directory.ts'
import type { TestDocker } from '../support/docker.ts'
import { compileGuest } from '../support/driver.ts'
import { describeWith, unmetNeeds } from '../support/needs.ts'
import { currentUser } from '../support/users.ts'
import { COLUMNS, type Column } from './columns.ts'
import { SENTENCES, type Sentence } from './sentences.ts'

const cells = new Map<string, string>()
const cellKey = (sentence: Sentence, column: Column): string => `${sentence.id}|${column.name}`

/** An ordinary owner of the zones, also when root runs the tests. */
const OWNER = 1000

async function newWorld(guest: string | undefined): Promise<string> {
  const world = await temporaryDirectory({ mode: 0o755 })
  for (const name of ['ro', 'rw', 'outside']) mkdirSync(join(world, name))
  writeFileSync(join(world, 'ro/file'), 'original')
  writeFileSync(join(world, 'outside/file'), 'secret')
  if (guest !== undefined) writeFileSync(join(world, 'ro/guest.wasm'), readFileSync(guest))
  if (currentUser() === 'root') for (const name of ['ro', 'ro/file', 'rw']) chownSync(join(world, name), OWNER, OWNER)
  return world
}

interface Started {
  readonly docker?: TestDocker
  readonly guest?: string
}

async function check(sentence: Sentence, { column, started }: { column: Column; started: Started }): Promise<void> {
  const { input, id } = sentence
  const world = await newWorld(started.guest)
  const outside = join(world, 'outside/file')
  const layer: PolicyLayer = {
    layer: 'flag',
    source: 'conformance',
    directory: world,
    values: {
      ...column.values,
      ...input.values,
      resources: { ...column.values.resources, ...input.values?.resources },
      ...(column.lacks.walls === undefined && {
        zones: [
          { name: 'ro', mode: 'ro', hostPath: join(world, 'ro') },
          { name: 'rw', mode: 'rw', hostPath: join(world, 'rw') },
        ],
        workdir: '/rw',
      }),
    },
  }
  const missing = id === 'not-found' ? ['llm-do-no-such-program'] : undefined
  const script = ['sh', '-c', input.script.replace('$OUTSIDE', outside)]
  const guest = ['/ro/guest.wasm', ...(input.wasi ?? []).map((word) => word.replace('$OUTSIDE', outside))]
  const result = await exec({
    command: missing ?? (column.wasi ? guest : script),
    layers: [layer],
    profile: 'task',
    cwd: join(world, 'rw'),
    mode: 'capture',
    stdin: input.stdin ?? 'ignore',
    env: {
      ...process.env,
      LLM_DO_TEST_SECRET: 'secret',
      LLM_DO_ALLOW_UNSANDBOXED: '1',
      ...started.docker?.env,
      ...(started.docker && { LLM_DO_DOCKER: started.docker.program }),
    },
  })
  sentence.holds({ result, world })
  cells.set(cellKey(sentence, column), 'holds')
}

/** LLM_DO_CONFORMANCE_TABLE=FILE writes the table that docs/internals/backends.md shows. */
export function testColumns(columns: readonly Column[]): void {
  for (const column of columns) testColumn(column)
  afterAll(() => {
    const file = process.env.LLM_DO_CONFORMANCE_TABLE
    if (file !== undefined) writeFileSync(file, table())
  })
}

function testColumn(column: Column): void {
  const state: { started: Started; stop: () => Promise<void> } = { started: {}, stop: async () => undefined }
  describeWith(column.needs, column.name, () => {
    beforeAll(async () => {
      if (column.start !== undefined) {
        Object.assign(state, { started: { docker: await column.start() } })
      }
      if (column.wasi) {
        const { path, remove } = await newDirectory()
        const guest = await compileGuest(join(path, 'guest.wasm'))
        Object.assign(state, { started: { guest }, stop: remove })
      }
    })
    afterAll(() => state.stop())

    for (const sentence of SENTENCES) {
      const lacking = sentence.needs.find((need) => column.lacks[need] !== undefined)
      const reason = lacking === undefined ? '' : ` (skipped, ${lacking}: ${column.lacks[lacking]})`
      if (lacking !== undefined) cells.set(cellKey(sentence, column), `skipped: ${column.lacks[lacking]}`)
      test.skipIf(lacking !== undefined)(`${sentence.title}${reason}`, async () => {
        onTestFailed(() => void cells.set(cellKey(sentence, column), 'FAILS'))
        await check(sentence, { column, started: state.started })
      })
    }
  })
}

/** Markdown: a row for each sentence, a column for each backend; the words of a cell once, below. */
function table(): string {
  const columns = COLUMNS.filter(({ needs }) => unmetNeeds(needs).length === 0)
  const notes: string[] = []
  const short = (text: string): string => {
    const [word = '', ...why] = text.split(': ')
    if (why.length === 0) return word
    const note = why.join(': ')
    if (!notes.includes(note)) notes.push(note)
    return `${word} [${notes.indexOf(note) + 1}]`
  }
  const rows = SENTENCES.map((sentence) => {
    const words = columns.map((column) => short(cells.get(cellKey(sentence, column)) ?? 'not run'))
    return `| ${sentence.title} | ${words.join(' | ')} |`
  })
  const head = [`| | ${columns.map(({ name }) => name).join(' | ')} |`, `|---|${columns.map(() => '---|').join('')}`]
  return [...head, ...rows, '', ...notes.map((note, index) => `${index + 1}. ${note}`), ''].join('\n')
}
