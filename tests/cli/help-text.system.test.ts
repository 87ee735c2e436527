/** The client alone answers questions about the program, with node's texts. */
import { join } from 'node:path'
import { execa } from 'execa'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { DECLARED } from '../../src/cli/subcommands.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { type PackageCopy, packageCopy } from '../support/package.ts'

let built: PackageCopy
beforeAll(async () => {
  built = await packageCopy()
})
afterAll(() => built.remove())

type Words = readonly string[]

const program = (name: string): string => join(built.root, 'bin', name)
const plain = { reject: false, stripFinalNewline: false } as const

async function byClient(words: Words, name = 'llm-do') {
  const { exitCode, stdout, stderr } = await built.withoutNode(() => execa(program(name), [...words], plain))
  return { exitCode, stdout, stderr }
}

/** As the script of other systems than Linux calls it. */
async function byNode(words: Words) {
  const directory = await temporaryDirectory()
  const env = { LLM_DO_CALL: 'argv', LLM_DO_DIRECTORY: directory, LLM_DO_KEPT_HOME: directory }
  const argv = [join(built.root, 'dist/cli.cjs'), ...words.map((word) => `=${word}`)]
  const { exitCode, stdout, stderr } = await execa(process.execPath, argv, { ...plain, env })
  return { exitCode, stdout, stderr }
}

const PATHS: readonly Words[] = DECLARED.flatMap(({ name, actions = [] }) => [
  [name],
  ...actions.map((action) => [name, action.name]),
])

const SAMPLE = new Set(['exec', 'learn', 'workers show', 'pool start'])

describe('the client answers in the words of node', () => {
  test.each<readonly [Words]>([[['-h']], [['help']], [['--version']], [['version']], [['exec', '-V']]])(
    '%j',
    async (words) => {
      const answer = await byNode(words)
      expect(answer).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/\S/) })
      expect(await byClient(words)).toEqual(answer)
    },
  )

  test('the help of every verb and action, by each of its spellings', async () => {
    for (const path of PATHS) {
      const answer = await byClient([...path, '--help'])
      expect({ path, ...answer }).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/Usage: llm-do/) })
      // Starts of node are slow: the others are made from the same declarations.
      if (SAMPLE.has(path.join(' '))) expect(answer).toEqual(await byNode([...path, '--help']))
      for (const words of [
        [...path, '-h'],
        ['help', ...path],
      ])
        expect({ words, ...(await byClient(words)) }).toEqual({ words, ...answer })
    }
  })

  test.each(['-h', '-V'])('llm-do-exec %s', async (word) => {
    expect(await byClient([word], 'llm-do-exec')).toEqual(await byNode(['exec', word]))
  })
})

describe('node answers', () => {
  test.each<readonly [Words]>([
    [[]],
    [['help', 'nothing']],
    [['nothing', '--help']],
    [['workers show', '--help']],
    [['help', 'workers', 'nothing']],
    [['help', 'workers', 'show', 'more']],
    [['--help', '--version']],
    [['workers', '--help', 'show']],
    [['exec', '--json', '--help']],
    [['exec', '--help', '--']],
    [['exec', 'ls', '--help']],
    [['', '--help']],
  ])('%j', async (words) => {
    // The node of the copy exits with 99.
    expect(await byClient(words)).toMatchObject({ exitCode: 99, stdout: '' })
  })

  test('where stdout is closed or full, with its own message', async () => {
    const script = (to: string) => execa('sh', ['-c', `exec "$0" --help ${to}`, program('llm-do')], plain)
    const byScript = (to: string) => built.withoutNode(() => script(to))
    for (const to of ['>&-', '> /dev/full']) expect({ to, ...(await byScript(to)) }).toMatchObject({ exitCode: 99 })
    expect((await script('> /dev/full')).stderr).toContain('OUTPUT_FAILED')
  })
})

test('a reader that goes away is no failure', async () => {
  const script = 'set -o pipefail; "$0" exec --help | true'
  expect((await execa('bash', ['-c', script, program('llm-do')], plain)).exitCode).toBe(0)
})

/** Its stdout is a full pipe that does not block; what comes behind what filled it, and the exit status. */
const FULL_PIPE = `
import os, subprocess, sys, time
reader, writer = os.pipe()
os.set_blocking(writer, False)
filled = 0
try:
    while True: filled += os.write(writer, b'.' * 1000)
except BlockingIOError:
    pass
child = subprocess.Popen(sys.argv[1:], stdout=writer)
os.close(writer)
sys.stdout.buffer.write(open(reader, 'rb').read()[filled:])
sys.exit(child.wait())
`

test('a full pipe that another program has made non-blocking gets all of it', async () => {
  const words = [program('llm-do'), 'exec', '--help']
  const { exitCode, stdout } = await execa('python3', ['-c', FULL_PIPE, ...words], plain)
  expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: (await byClient(['exec', '--help'])).stdout })
})
