/** The Python client: test_python.py under pytest, whose tests are counted as ours. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { execa } from 'execa'
import { beforeAll, expect, test } from 'vitest'
import { environmentOf } from '../support/cli.ts'
import { newDirectory } from '../support/directory.ts'
import { expectNothingLeft, newMark, takeSnapshot } from '../support/leftovers.ts'
import { describeWith } from '../support/needs.ts'
import { checkoutFor, currentUser } from '../support/users.ts'

const CHECKOUT = checkoutFor(currentUser())
const PYTEST = ['-m', 'pytest', '-p', 'no:cacheprovider', '--rootdir', import.meta.dirname]
const FILE = join(import.meta.dirname, 'test_python.py')
const PROGRAM = join(CHECKOUT, 'bin/llm-do')
const ENVIRONMENT = {
  ...environmentOf(currentUser()),
  LLM_DO: PROGRAM,
  PYTEST_PROGRAM: PROGRAM,
  PYTHONPATH: join(CHECKOUT, 'clients/python'),
  PYTHONDONTWRITEBYTECODE: '1',
}

/** `class::name` of each test. */
function collected(): readonly string[] {
  const words = [...PYTEST, '--collect-only', '-q', FILE]
  const { stdout } = spawnSync('/usr/bin/python3', words, { env: ENVIRONMENT, encoding: 'utf8' })
  return [...stdout.matchAll(/^test_python\.py::(.*)$/gm)].map(([, name = '']) => name)
}

/** `TestARun::test_reports_a_signal` -> `a run reports a signal`. */
const titleOf = (name: string): string =>
  name
    .replace(/^Test(\w+)::test_/, (_, words: string) => `${words.replaceAll(/(?<!^)([A-Z])/g, ' $1').toLowerCase()} `)
    .replaceAll('_', ' ')

/** Starts all of them once. */
async function runAll() {
  const mark = newMark()
  const before = await takeSnapshot({ mark })
  const cwd = (await newDirectory({ mode: 0o755 })).path
  const env = { ...ENVIRONMENT, HOME: (await newDirectory()).path, LLM_DO_TEST_MARK: mark }
  const words = [...PYTEST, '-q', '-rA', '--tb=short', `--basetemp=${join(cwd, 'pytest')}`, FILE]
  const { stdout } = await execa('/usr/bin/python3', words, { cwd, env, extendEnv: false, reject: false })
  return { before, mark, stdout }
}

describeWith(['bwrap', 'userns', 'pytest'], 'the Python client', () => {
  let ran: Awaited<ReturnType<typeof runAll>>
  beforeAll(async () => {
    ran = await runAll()
  })

  test('has tests', () => expect(collected().length).toBeGreaterThan(60))

  test.each(collected().map((name) => [titleOf(name), name] as const))('%s', (_title, name) => {
    const hasPassed = ran.stdout.split('\n').some((line) => line.startsWith('PASSED ') && line.endsWith(`::${name}`))
    expect(hasPassed, ran.stdout).toBe(true)
  })

  test('leaves nothing', async () => expectNothingLeft(ran))
})
