/**
 * A sandbox inside a sandbox: a tool of an agent gives a command less than the agent has. What the outer command does itself, in the same
 * run, is the negative control.
 */
import { once } from 'node:events'
import { chown, readdir } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { dirname } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { textHere } from '../real/in-process.ts'
import { programFor } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { currentUser, PLAIN_ID } from '../support/users.ts'

/** A directory that root's command, too, may be given for writing without namespaces, and what an agent does in it. */
async function agentOf() {
  const project = await temporaryDirectory({ mode: 0o755 })
  if (currentUser() === 'root') await chown(project, PLAIN_ID, PLAIN_ID)
  const run = async (script: string, ...options: readonly string[]) => {
    const argv = ['--profile', 'agent', '--home', 'none', ...options, '--', 'sh', '-c', script]
    return await textHere(argv, { cwd: project })
  }
  return { project, run }
}

const packageOf = (): string => dirname(dirname(programFor(currentUser())))

describeWith(['userns', 'python'], 'llm-do exec inside llm-do exec', () => {
  test('runs a command, says what holds it, and shows nothing of ours', async () => {
    const { run } = await agentOf()
    const inner = `llm-do exec --json --ro . -- sh -c 'echo inner; exit 7'; echo "status $?"; llm-do doctor | tail -1`
    const { out } = await run(inner)
    const [json = '', ...rest] = out.split('\n')
    expect(JSON.parse(json)).toMatchObject({
      ...{ exitCode: 7, stdout: 'inner\n', backend: 'no-namespaces' },
      isolation: { fs: 'landlock', pid: false, user: false },
      warnings: [expect.stringContaining('inside a sandbox of llm-do exec')],
    })
    expect(rest).toEqual(['status 7', 'ok  default profile  runs on no-namespaces', ''])
    const ours = ['/run/llm-do', '/var/lib/llm-do', `/run/user/${PLAIN_ID}`, `/tmp/llm-do-${PLAIN_ID}`]
    const look = await run(
      `ls -d ${ours.join(' ')} 2>/dev/null; llm-do exec --ro . -- ls -d ${ours.join(' ')} 2>/dev/null`,
    )
    expect(look.out).toBe('')
  })

  test('writes and reaches less than the one around it', async () => {
    const { project, run } = await agentOf()
    const server = createServer((socket) => socket.end()).listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const reach = `python3 -c 'import socket; socket.create_connection(("127.0.0.1", ${port}))' 2>/dev/null`
    const { out } = await run(
      `llm-do exec --ro . -- touch by-inner
      llm-do exec --rw . -- touch by-writing-inner
      touch by-outer
      for net in none host; do llm-do exec --net $net --ro . -- ${reach} && echo $net; done
      ${reach} && echo outer`,
      ...['--net', 'host'],
    )
    expect((await readdir(project)).toSorted()).toEqual(['by-outer', 'by-writing-inner'])
    expect(out).toBe('host\nouter\n')
  })

  test('cannot have what the walls around it do not hold, and is refused what it requires', async () => {
    const { run } = await agentOf()
    const { out, err } = await run(`
      llm-do exec --rw /usr -- touch /usr/planted || echo "usr $?"
      llm-do exec --require pid-namespace -- true || echo "pid $?"
      llm-do exec --allow-host a.test -- true || echo "host $?"`)
    expect(out.replace(/^usr .*/, 'usr')).toBe('usr\npid 125\nhost 125\n')
    expect(err).toContain('no-namespaces lacks pid-namespace')
    expect(err).toContain('--net host, which is what the sandbox around it lets through')
  })

  test('holds another one, which has less again', async () => {
    const { project, run } = await agentOf()
    const second = (words: string) => `llm-do exec --memory none ${words}`
    const { out } = await run(
      `scratch=$(mktemp -d); llm-do exec --ro "$PACKAGE" --rw . --rw $scratch --env TMPDIR=$scratch --env XDG_RUNTIME_DIR=$scratch -- sh -c '
        ${second('--ro . -- touch third')}; ${second('--rw . -- sh -c "touch by-third; exit 5"')}; echo "status $?"
        ${second('--timeout 1s --ro . -- sh -c "(setsid setsid sleep 88 &); sleep 89"')}; echo "status $?"
        llm-do exec --ro . -- true 2>&1 | grep -q memory-limit.*hides && echo refused; touch second'`,
      ...['--env', `PACKAGE=${packageOf()}`],
    )
    expect(out).toBe('status 5\nstatus 124\nrefused\n')
    expect((await readdir(project)).toSorted()).toEqual(['by-third', 'second'])
  })
})
