/** `llm-do mcp` as a client starts it, what commands do, how they end, and what is left. */
import { existsSync, readFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makePlace } from '../cow/place.ts'
import { runCli } from '../support/cli.ts'
import { expectNothingLeft, newMark, takeSnapshot } from '../support/leftovers.ts'
import { describeWith } from '../support/needs.ts'
import { currentUser } from '../support/users.ts'
import { overStdio, put } from './client.ts'

/** Is there a process with this word? Those of the test have it in no command line. */
const lives = async (mark: string): Promise<boolean> => (await takeSnapshot({ mark })).processes.length > 0

const user = currentUser()

describeWith(['bwrap', 'userns'], 'llm-do mcp', () => {
  test('runs commands, and says what was refused', async () => {
    const place = await makePlace(user)
    put(place, 'file', 'data\n')
    const { call } = await overStdio(place)
    const fine = await call('run_command', { command: 'cat file -', stdin: 'typed' })
    expect(fine).toMatchObject({ isError: false, data: { ok: true, exitCode: 0, stdout: { text: 'data\ntyped' } } })
    expect(fine.texts).toEqual([expect.stringMatching(/^exited with 0 after /), 'stdout:\ndata\ntyped'])
    const words = await call('run_command', { command: 'printf', args: ['%s|', 'a b', '$HOME', ''] })
    expect(words.data.stdout.text).toBe('a b|$HOME||')
    const failed = await call('run_command', { command: 'echo x > /workspace/new; exit 4' })
    expect(failed).toMatchObject({ isError: false, data: { ok: false, exitCode: 4, reason: 'exit' } })
    expect(failed.data.denials).toMatchObject([
      { layer: 'mount', operation: 'write', fix: expect.stringContaining('--rw') },
    ])
    expect(failed.texts[0]).toContain(failed.data.denials[0]?.fix ?? '-')
    const missing = await call('run_command', { command: 'no-such-program', args: [] })
    expect(missing).toMatchObject({ isError: true, data: { error: { code: 'COMMAND_NOT_FOUND' } } })
  })

  test('with --tty each command has a terminal, whose input ends, and one stream for both outputs', async () => {
    const { call } = await overStdio(await makePlace(user), '--tty')
    const asked = await call('run_command', { command: 'tty >/dev/null && read x; echo "got=$x" >&2' })
    expect(asked.data).toMatchObject({ exitCode: 0, stdout: { text: 'got=\r\n' }, stderr: { text: '' } })
    const typed = await call('run_command', { command: 'cat', stdin: 'typed\n' })
    expect(typed.data).toMatchObject({ exitCode: 0, stdout: { text: 'typed\r\ntyped\r\n' } })
  })

  test('starts below the workspace, ends a command earlier, and nothing in a call widens the policy', async () => {
    const place = await makePlace(user)
    await mkdir(join(place.project, 'sub'))
    const { call, client } = await overStdio(place)
    expect((await call('run_command', { command: 'pwd', cwd: 'sub' })).data.stdout.text).toBe('/workspace/sub\n')
    const nowhere = await call('run_command', { command: 'pwd', cwd: 'nowhere' })
    expect(nowhere).toMatchObject({
      isError: true,
      data: { error: { message: expect.stringMatching(/the directory .*\/nowhere does not exist$/) } },
    })
    const late = await call('run_command', { command: 'echo begun; exec sleep 300', timeout_ms: 3000 })
    expect(late.data).toMatchObject({
      reason: 'timeout',
      stdout: { text: 'begun\n' },
      message: expect.stringContaining('3000 ms'),
    })
    // The other refused arguments: tools.test.ts.
    for (const [name, wish] of [
      ['run_command', { command: 'id', network: 'host' }],
      ['apply', {}],
      ['no_such_tool', {}],
    ] as const)
      await expect(client.callTool({ name, arguments: wish })).rejects.toMatchObject({ code: -32602 })
  })

  test('answers an invalid line with an error, and continues', async () => {
    const { project, env } = await makePlace(user)
    const stdin = 'junk\n[]\n{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    const { stdout } = await runCli(['mcp'], { program: 'llm-do', as: user, cwd: project, env, stdin })
    const answers = stdout.toString().trim().split('\n')
    expect(answers.map((line) => JSON.parse(line))).toMatchObject([
      { id: null, error: { code: -32700 } },
      { id: null, error: { code: -32600 } },
      { id: 1, result: {} },
    ])
  })

  test('reports progress, and a cancelled call ends the whole tree', async () => {
    const place = await makePlace(user)
    const mark = newMark()
    const { call } = await overStdio(place)
    await call('run_command', { command: 'true' })
    const abort = new AbortController()
    const heard: string[] = []
    const run = call(
      'run_command',
      {
        command: `echo at work; (setsid sh -c 'trap "" TERM; sleep 300; : ${mark}' &); trap '' TERM; sleep 300; : ${mark}`,
      },
      { signal: abort.signal, onprogress: ({ message = '' }) => heard.push(message) },
    )
    await expect.poll(() => heard).toContain('at work')
    expect(await lives(mark)).toBe(true)
    abort.abort('enough')
    await expect(run).rejects.toThrow('enough')
    await expect.poll(() => lives(mark)).toBe(false)
    expect((await call('run_command', { command: 'echo alive' })).data.stdout.text).toBe('alive\n')
  })

  test('shows head and tail of a long output, and the middle where it is asked for', async () => {
    const { call } = await overStdio(await makePlace(user))
    // More than a result keeps (--output): the server has it all, and must not say that something was dropped.
    const { data } = await call('run_command', { command: 'seq 200000; seq 3 >&2' })
    expect(data).toMatchObject({ ok: true, message: '', hints: [] })
    const whole = Array.from({ length: 200_000 }, (_, at) => `${at + 1}\n`).join('')
    const { gap = { from: 0, to: 0 }, text, bytes } = data.stdout
    expect([bytes, data.stderr.text]).toEqual([whole.length, '1\n2\n3\n'])
    expect(text.startsWith(whole.slice(0, gap.from))).toBe(true)
    expect(text.endsWith(whole.slice(gap.to))).toBe(true)
    expect(text.length).toBeLessThan(40_000)
    // All pieces of one: outputs.test.ts.
    const piece = await call('read_output', { id: data.output ?? '', offset: gap.from, length: 1000 })
    expect(piece.data.text).toBe(whole.slice(gap.from, gap.from + 1000))
    expect(await call('read_output', { id: 'other' })).toMatchObject({
      isError: true,
      texts: [expect.stringContaining('OUTPUT_NOT_FOUND')],
    })
  })

  test('goes on with what commands have changed, until it is applied or discarded', async () => {
    const place = await makePlace(user)
    put(place, 'file', 'old\n')
    const { call } = await overStdio(place, '--cow', '.')
    await call('run_command', { command: 'echo new > file; mkdir made' })
    const second = await call('run_command', {
      command: 'cat ../file; echo y > y; echo evil > ../.envrc',
      cwd: 'made',
    })
    expect(second.data.stdout.text).toBe('new\n')
    expect(second.data.changes?.list.map(({ path }) => path).toSorted()).toEqual(['.envrc', 'file', 'made', 'made/y'])
    expect((await call('diff', { paths: ['file'] })).data.patch.text).toContain('-old\n+new\n')
    expect(readFileSync(join(place.project, 'file'), 'utf8')).toBe('old\n')
    // Only a person may apply a file that a program of the host obeys, although it is named.
    const applied = await call('apply', { paths: ['file', '.envrc'] })
    expect(applied.data).toEqual({ applied: 1, conflicts: [], protected: ['.envrc'], special: [] })
    expect(applied.texts[0]).toMatch(/llm-do apply \w+ \.envrc/)
    expect(readFileSync(join(place.project, 'file'), 'utf8')).toBe('new\n')
    expect(existsSync(join(place.project, '.envrc'))).toBe(false)
    expect((await call('run_command', { command: 'cat made/y' })).data.stdout.text).toBe('y\n')
    put(place, 'taken', '')
    await call('run_command', { command: 'echo mine > taken' })
    put(place, 'taken', 'theirs')
    expect(await call('apply', { paths: ['taken'] })).toMatchObject({ isError: true, data: { conflicts: ['taken'] } })
    expect((await call('discard', {})).data).toEqual({ discarded: true })
    expect((await call('run_command', { command: 'cat taken; ls made' })).data).toMatchObject({
      exitCode: 2,
      stdout: { text: 'theirs' },
    })
    expect((await call('diff', {})).data).toMatchObject({ patch: { text: '' } })
  })

  test.each(['the client closes stdin', 'the server is killed'])('leaves nothing when %s', async (how) => {
    const place = await makePlace(user)
    const mark = newMark()
    const before = await takeSnapshot({
      mark,
      runsDirectories: [join(place.env['XDG_RUNTIME_DIR'] ?? '', 'llm-do/runs')],
    })
    const { call, client, pid } = await overStdio(place)
    await call('run_command', { command: 'seq 100000' })
    const heard: string[] = []
    const onprogress = ({ message = '' }) => void heard.push(message)
    const run = call('run_command', { command: `echo begun; sleep 300; : ${mark}` }, { onprogress })
    run.catch(() => undefined)
    await expect.poll(() => heard).toContain('begun')
    if (how === 'the server is killed') process.kill(pid, 'SIGKILL')
    else await client.close()
    await expect(run).rejects.toThrow()
    await expectNothingLeft({ before, mark })
  })
})
