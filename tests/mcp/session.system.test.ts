/** `session` of run_command: a sandbox that stays for one client, and what ends it. */
import { expect, test } from 'vitest'
import { makePlace, type Place } from '../cow/place.ts'
import { runCli } from '../support/cli.ts'
import { describeWith } from '../support/needs.ts'
import { currentUser } from '../support/users.ts'
import { overHttp, overStdio, put } from './client.ts'

const user = currentUser()

/** Live runs of the project. */
async function runsOf({ project, env }: Place): Promise<number> {
  const { stdout } = await runCli(['ps', '--json'], { as: user, program: 'llm-do', env: env as Record<string, string> })
  return (JSON.parse(stdout.toString()) as { directory: string }[]).filter(({ directory }) => directory === project)
    .length
}

describeWith(['bwrap', 'userns'], 'the session of a client', () => {
  test('goes on with directory, variables, functions and files, and nothing keeps running', async () => {
    const place = await makePlace(user)
    const { call } = await overStdio(place)
    const keep = (command: string, more = {}) => call('run_command', { command, session: 'keep', ...more })
    await keep('cd /tmp; export A=1; f() { echo "f $A"; }; echo x >file; (setsid sleep 300 &)')
    expect(
      (await keep('pwd; f; cat file -; cat /proc/[0-9]*/comm | grep -c sleep', { stdin: 'typed' })).data,
    ).toMatchObject({
      stdout: { text: '/tmp\nf 1\nx\ntyped1\n' },
      warnings: [],
    })
    expect((await call('run_command', { command: 'pwd; echo "$A"; ls /tmp' })).data.stdout.text).toBe('/workspace\n\n')
    const late = await keep('cd /usr; sleep 300', { timeout_ms: 300 })
    expect(late.data).toMatchObject({ reason: 'timeout', message: expect.stringContaining('300 ms') })
    expect((await keep('pwd')).data.stdout.text).toBe('/tmp\n')
    const fresh = await call('run_command', { command: 'pwd; echo "$A"; ls /tmp', session: 'new' })
    expect(fresh.data).toMatchObject({ stdout: { text: '/workspace\n\n' }, warnings: [] })
    expect((await keep('exec true')).data.warnings).toEqual([expect.stringContaining('the earlier state remains')])
    expect((await keep('kill -KILL -1')).data.reason).toBe('lost')
    const again = await keep('echo again')
    expect(again.data).toMatchObject({
      stdout: { text: 'again\n' },
      warnings: [expect.stringContaining('a new session')],
    })
    expect(again.texts[0]).toContain('a new session has begun')
  })

  test('is of one client alone, and ends with it', async () => {
    const place = await makePlace(user)
    const server = await overHttp(place)
    const [one, other] = [await server.connect(), await server.connect()]
    const keep = ({ call }: typeof one, command: string) => call('run_command', { command, session: 'keep' })
    const before = await runsOf(place)
    await keep(one, 'cd /tmp; export A=1; echo x >file; id -u >/dev/null')
    expect((await keep(other, 'pwd; echo "$A"; ls /tmp')).data.stdout.text).toBe('/workspace\n\n')
    expect((await keep(one, 'pwd; echo "$A"; ls /tmp')).data.stdout.text).toBe('/tmp\n1\nfile\n')
    expect(await runsOf(place)).toBe(before + 2)
    await one.transport.terminateSession()
    await expect.poll(() => runsOf(place)).toBe(before + 1)
    expect((await keep(other, 'echo here')).data.stdout.text).toBe('here\n')
    expect(await server.stop()).toBe(0)
    expect(await runsOf(place)).toBe(0)
  })

  test('with copy-on-write ends before its changes are looked at, which the next commands see', async () => {
    const place = await makePlace(user)
    put(place, 'file', 'old\n')
    const { call } = await overStdio(place, '--cow', '.')
    const keep = (command: string) => call('run_command', { command, session: 'keep' })
    await call('run_command', { command: 'echo first >first' })
    expect((await keep('cat first; export A=1; echo new >file')).data.stdout.text).toBe('first\n')
    expect((await keep('echo $A; cat file')).data.stdout.text).toBe('1\nnew\n')
    const { data } = await call('diff', {})
    expect(data.changes?.list.map(({ path }) => path).toSorted()).toEqual(['file', 'first'])
    const next = await keep('echo "$A"; cat file first; rm first')
    expect(next.data).toMatchObject({
      stdout: { text: '\nnew\nfirst\n' },
      warnings: ['a new session has begun: diff has ended the one before'],
    })
    expect((await call('run_command', { command: 'ls' })).data.stdout.text).toBe('file\n')
    await keep('echo last >last')
    const fresh = await call('run_command', { command: 'cat last; rm last', session: 'new' })
    expect(fresh.data).toMatchObject({ stdout: { text: 'last\n' }, warnings: [] })
    expect((await call('apply', {})).data).toMatchObject({ applied: 1, conflicts: [] })
    expect((await call('discard', {})).data).toEqual({ discarded: false })
  })
})
