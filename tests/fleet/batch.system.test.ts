/** `llm-do batch`: every line has one result, whatever happens to the batch. */
import { existsSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { lockOf } from '../../src/os/file-lock.ts'
import { runCli, startCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'

interface Line {
  readonly id: string
  readonly ok: boolean
  readonly exitCode?: number
  readonly reason?: string
  readonly stdout?: string
  readonly error?: { readonly cause: string; readonly message: string }
}

const linesIn = (text: string): readonly Line[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line)

const input = (tasks: readonly object[]): string => tasks.map((task) => `${JSON.stringify(task)}\n`).join('')

async function batchOf(text: string, words: readonly string[] = []) {
  const { status, stdout, stderr } = await runCli(['batch', '-', ...words], { program: 'llm-do', stdin: text })
  return { status, results: linesIn(stdout.toString()), stderr: stderr.toString() }
}

/** Starts one that lasts, with its files. */
async function start(tasks: readonly object[], words: readonly string[]) {
  const cwd = await temporaryDirectory()
  writeFileSync(join(cwd, 'in'), input(tasks))
  const run = (more: readonly string[] = []) =>
    startCli(['batch', 'in', '--results', 'out', ...words, ...more], { program: 'llm-do', cwd })
  const out = join(cwd, 'out')
  const read = (): string => {
    try {
      return readFileSync(out, 'utf8')
    } catch {
      return ''
    }
  }
  return { run, out, read }
}

describeWith('userns', 'a batch', () => {
  test('gives each line its result, with its own words, variables, input and limit', async () => {
    const text = input([
      { id: 'words', command: ['printf', '%s', 'a b'] },
      { id: 'text', command: 'cat; echo $GREETING', stdin: 'in ', env: { GREETING: 'hello' } },
      { id: 'late', command: 'sleep 60', timeout: '300ms' },
      { command: 'exit 4' },
    ])
    const { status, results } = await batchOf(text, ['-j', '2', '--ordered'])
    expect(status).toBe(1)
    expect(results).toMatchObject([
      { id: 'words', ok: true, stdout: 'a b' },
      { id: 'text', ok: true, stdout: 'in hello\n' },
      { id: 'late', ok: false, exitCode: 124, reason: 'timeout' },
      { id: '4', ok: false, exitCode: 4 },
    ])
  })

  test('says of a line that is no task what is wrong with it, and goes on', async () => {
    const { status, results } = await batchOf('{"comand":"x"}\nnot json\n\n{"command":"echo ok"}', ['--ordered'])
    expect(status).toBe(1)
    expect(results).toMatchObject([
      { id: '1', ok: false, error: { cause: 'invalid' } },
      { id: '2', ok: false, error: { message: 'line 2: expected an object of JSON' } },
      { id: '4', ok: true },
    ])
    expect(results[0]?.error?.message).toContain('Did you mean "command"?')
  })

  test('ends at an ID that two lines have: one of them would have no result', async () => {
    const { status, stderr } = await batchOf(
      input([
        { id: 'a', command: 'true' },
        { id: 'a', command: 'false' },
      ]),
      ['-j', '1'],
    )
    expect(status).toBe(125)
    expect(stderr).toContain('error USAGE: line 2: another line has the ID "a"')
  })

  test.each([
    { what: 'a missing file', words: ['missing'], code: 'USAGE: /', problem: '/missing: no such file or directory' },
    { what: 'a directory', words: ['.'], code: 'USAGE: /', problem: ': it is a directory' },
    {
      what: 'results in no directory',
      words: ['in', '--results', 'no/out'],
      code: 'USAGE: /',
      problem: '/no/out: no such',
    },
    {
      what: 'a full disk',
      words: ['in', '--results', '/dev/full'],
      code: 'OUTPUT_FAILED: /dev/full',
      problem: 'ENOSPC',
    },
  ])('refuses $what, and says so in plain words', async ({ words, code, problem }) => {
    const cwd = await temporaryDirectory()
    writeFileSync(join(cwd, 'in'), input([{ command: 'true' }]))
    const { status, stderr } = await runCli(['batch', ...words], { program: 'llm-do', cwd })
    expect(status).toBe(125)
    expect(stderr.toString()).toContain(`error ${code}`)
    expect(stderr.toString()).toContain(problem)
  })

  test('loses nothing and runs nothing twice when it is killed and goes on, with a torn line at the end', async () => {
    const tasks = Array.from({ length: 60 }, (_, at) => ({ id: `t${at}`, command: `echo ${at}` }))
    const { run, out, read } = await start(tasks, ['-j', '4'])
    const first = run()
    await expect.poll(() => read().split('\n').length).toBeGreaterThan(5)
    first.kill('SIGKILL')
    await first
    const whole = read()
    const before = whole.slice(0, whole.lastIndexOf('\n') + 1)
    truncateSync(out, Buffer.byteLength(before) - 10)
    expect(linesIn(before).length).toBeLessThan(60)
    expect((await run(['--resume'])).exitCode).toBe(0)
    const results = linesIn(read())
    expect(results).toHaveLength(60)
    expect(new Set(results.map(({ id }) => id)).size).toBe(60)
    expect(results.every(({ id, stdout }) => stdout === `${id.slice(1)}\n`)).toBe(true)
    expect(read().startsWith(before.slice(0, before.lastIndexOf('\n', before.length - 2) + 1))).toBe(true)
  })

  test('writes over no results that are there', async () => {
    const { run, read } = await start([{ command: 'true' }], [])
    expect((await run()).exitCode).toBe(0)
    const before = read()
    const { exitCode, stderr } = await run()
    expect(exitCode).toBe(125)
    expect(stderr).toContain('--resume')
    expect(read()).toBe(before)
  })

  test('lets no task change what runs next, or what has run', async () => {
    const command = 'for f in in out out.lock; do echo x >> $f; rm -f $f; mv $f away; done; touch made; ls away'
    const forge = { id: 'a', command: `${command} || ln -s no-such-boot/1/1:1 out.lock.0` }
    const { run, out, read } = await start([forge, { id: 'b', command: 'test -e made' }], ['-j', '1', '--rw', '.'])
    expect((await run()).exitCode).toBe(0)
    expect(linesIn(read())).toMatchObject([
      { id: 'a', ok: true },
      { id: 'b', ok: true },
    ])
    expect(existsSync(lockOf(out))).toBe(false)
    expect((await run(['--resume'])).exitCode).toBe(0)
  })

  test('ends its runs at a signal, and leaves whole lines of those that have ended', async () => {
    const { run, read } = await start(
      [
        { id: 'a', command: 'true' },
        { id: 'b', command: 'sleep 60' },
      ],
      ['-j', '1', '--timeout', '60s'],
    )
    const child = run()
    await expect.poll(read).toContain('\n')
    child.kill('SIGINT')
    expect((await child).exitCode).toBe(130)
    expect(linesIn(read()).map(({ id }) => id)).toEqual(['a'])
  })
})
