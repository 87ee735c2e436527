/**
 * Follows the denials of rows.ts: the flag is taken out of the result, word by word, and with it the command succeeds. A denial that names the
 * wrong thing, or a flag that does not help, fails its row. Most rows run a second time with --explain, which has to find the same.
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import type { Result } from '../../src/report/result.ts'
import { runHere } from '../real/in-process.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { BIND, DENIALS, type DenialRow, MAKE } from './rows.ts'

/** `work` is where the command runs, `library` lies next to it. */
async function makePlace(): Promise<string> {
  const place = await temporaryDirectory()
  await mkdir(join(place, 'work/sub'), { recursive: true })
  await mkdir(join(place, 'library'))
  await writeFile(join(place, 'library/data'), 'data\n')
  await writeFile(join(place, 'work/main.c'), 'int main(void) { return 0; }\n')
  await execa('git', ['init', '-q', join(place, 'work/repository')])
  await execa('sh', ['-ec', MAKE], { cwd: place })
  return place
}

const IDENTITY = ['AUTHOR', 'COMMITTER'].flatMap((who) => [`--env=GIT_${who}_NAME=a`, `--env=GIT_${who}_EMAIL=a@b.c`])

/** @param more flags of both runs */
async function followed(at: number, ...more: readonly string[]): Promise<void> {
  const place = await makePlace()
  const { flags = [], script, denial, replaces = false, at: directory = 'work' } = DENIALS(place)[at] as DenialRow
  const command = typeof script === 'string' ? ['-c', script] : ['--', ...script]
  const run = (...words: readonly string[]): Promise<Result> =>
    runHere([...IDENTITY, ...more, ...words, ...command], { cwd: join(place, directory), env: { HOME: place } })
  const refused = await run(...flags)
  const wanted = more.includes('--explain') ? { ...denial, evidence: 'sandbox' } : denial
  expect(refused.ok).toBe(false)
  expect(refused.denials).toContainEqual(expect.objectContaining(wanted))
  const fix = refused.denials.find((one) => one.fix === denial.fix)?.fix.split(' ') ?? []
  const { ok, denials, stderr } = await run(...(replaces ? [] : flags), ...fix)
  expect({ ok, denials, stderr }).toMatchObject({ ok: true, denials: [] })
}

const rowsWhere = (isMeant: (row: DenialRow) => boolean) =>
  DENIALS('PLACE').flatMap((row, at) => (isMeant(row) ? [[row.what, at] as const] : []))

describeWith(['userns', 'git', 'python', 'strace'], 'a denial that is followed lets the command succeed', () => {
  test.each(rowsWhere(({ watched }) => watched !== 'only'))('%s', (_, at) => followed(at))
})

describeWith(['userns', 'unshare', 'git', 'python'], 'with --explain it is found without what the command says', () => {
  test.each(rowsWhere(({ watched }) => watched !== undefined))('%s', (_, at) => followed(at, '--explain'))
})

testWith(
  ['userns', 'bwrap', 'git', 'python'],
  'a program that bwrap starts gets the hint with its flag, and succeeds with it',
  async () => {
    for (const [, at] of rowsWhere(({ what }) => ['mkdir', 'a file of the host'].includes(what)))
      await followed(at, '--explain', '--engine', 'bwrap')
  },
)

describeWith(['userns', 'python'], 'nothing is denied', () => {
  test.each([
    ['a script of a virtual environment', '.venv/bin/tool && echo here'],
    ['python, activated', '. .venv/bin/activate; python -c "import inside" && echo here'],
    ['a program of an environment, activated', '. .venv/bin/activate; tool && echo here'],
    ['the environment of a writable directory', '. .venv/bin/activate; tool && echo here >made; cat made', '--rw', '.'],
  ])('to %s', async (_, script, ...flags) => {
    const place = await makePlace()
    const { ok, stdout, denials } = await runHere([...flags, '-lc', script], {
      cwd: join(place, 'python'),
      env: { HOME: place },
    })
    expect({ ok, stdout, denials }).toEqual({ ok: true, stdout: 'here\n', denials: [] })
  })

  test.each([
    ['a search without a match', 'grep nomatch main.c'],
    ['a name that the host does not have either', 'cat nosuch ../nosuch /nosuch'],
    ['a file without rights', 'cat closed; exit 1'],
  ])('by %s', async (_, script) => {
    const place = await makePlace()
    await writeFile(join(place, 'work/closed'), '', { mode: 0 })
    const { ok, denials, hints } = await runHere(['-c', script], { cwd: join(place, 'work'), env: { HOME: place } })
    expect({ ok, denials, hints }).toEqual({ ok: false, denials: [], hints: [] })
  })

  test('with a flag for a private key', async () => {
    const place = await makePlace()
    await mkdir(join(place, '.ssh'))
    for (const name of ['.ssh/id', 'open']) await writeFile(join(place, name), 'text')
    const read = (name: string) =>
      runHere(['--', 'cat', join(place, name)], { cwd: join(place, 'work'), env: { HOME: place } })
    const { denials, hints } = await read('.ssh/id')
    expect({ denials, hints }).toEqual({
      denials: [],
      hints: [expect.stringMatching(/id is not visible .* credentials$/)],
    })
    expect((await read('open')).denials).toMatchObject([{ fix: `--ro ${place}/open` }])
  })

  test('to sockets and FIFOs in TMPDIR where a writable zone lies below /tmp', async () => {
    const place = await makePlace()
    const script = `cd "$TMPDIR"; pwd; mkfifo f && ${BIND} && test "$TMUX_TMPDIR" = "$TMPDIR"`
    const { ok, stdout, denials } = await runHere(['--rw', '.:/tmp/in/work', '-c', script], {
      cwd: join(place, 'work'),
    })
    expect({ ok, stdout, denials }).toEqual({ ok: true, stdout: '/var/tmp\n', denials: [] })
  })

  test('to sockets and FIFOs of the scratch above a read-only zone', async () => {
    const place = await makePlace()
    const script = `cd /tmp; mkfifo f; ${BIND}; cd in/library; mkfifo f`
    const { stderr } = await runHere(['--ro', `${place}/library:/tmp/in/library`, '-c', script], {
      cwd: join(place, 'work'),
    })
    expect(stderr).toBe("mkfifo: cannot create fifo 'f': Read-only file system\n")
  })
})
