/** The fork server: as its owner and as somebody else by hand, and as the library's runs use it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { readdir, readFile, rename } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { FRAME } from '../../../src/contract.ts'
import { openSandbox } from '../../../src/pool/sandbox.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { partWords } from '../../support/host-part.ts'
import { expectNothingLeft, newMark, takeSnapshot } from '../../support/leftovers.ts'
import { describeWith, testWith } from '../../support/needs.ts'
import { childrenOf, readOr, until } from '../../support/processes.ts'
import { forked, open, run, serverOf, startOwner } from './fork-servers.ts'
import { launchFile } from './launch-files.ts'
import { type Answer, COMMAND, type Frame, kinds, speak as speakTo } from './speak.ts'

interface ServerAnswer extends Answer {
  /** In the directory of its socket while it listened. */
  readonly names: readonly string[]
  /** When the answer was there, its owner's end still open. */
  readonly alive: boolean
}

async function plan(streams: string): Promise<Frame> {
  return [FRAME.plan, Buffer.concat([Buffer.from(`${streams}\0`), await readFile(await launchFile())])]
}

const speak = async (frames: readonly Frame[], who: 'owner' | 'other' = 'owner') =>
  speakTo<ServerAnswer>(frames, { directory: await temporaryDirectory(), who })

describeWith(['bwrap', 'userns'], 'a fork server', () => {
  test('runs what its owner sends, tells that it was taken, and ends with its owner', async () => {
    const answer = await speak([await plan('output'), COMMAND])
    expect(kinds(answer)).toEqual([FRAME.taken, FRAME.output, FRAME.status])
    expect(answer).toMatchObject({ alive: true, status: 0 })
    expect(answer.frames[1]).toEqual([FRAME.output, 'ran\n'])
  })

  test('runs nothing for any process: no process but its owner', async () => {
    const frames = [await plan('output'), COMMAND]
    expect(kinds(await speak(frames))).toContain(FRAME.taken)
    expect(await speak(frames, 'other')).toMatchObject({ frames: [], alive: true, status: 0 })
  })

  testWith('root', 'does not begin where it could not tell its owner from other processes', async () => {
    const to = { directory: await temporaryDirectory(), who: 'outside' }
    expect(await speakTo<object>([await plan('output'), COMMAND], to)).toEqual({ ready: false, frames: [] })
  })

  test('builds a sandbox that waits for its command, which may come before it is ready', async () => {
    const answer = await speak([await plan('warm'), COMMAND])
    expect(kinds(answer)).toEqual([FRAME.ready, FRAME.taken, FRAME.output, FRAME.status])
    expect(answer.frames[2]).toEqual([FRAME.output, 'ran\n'])
  })

  test('has no name in the file system', async () => {
    expect((await speak([COMMAND])).names).toEqual([])
  })

  test('takes no command without a plan, no second plan, and no plan that is none', async () => {
    const good = await plan('output')
    expect((await speak([COMMAND])).frames).toEqual([])
    expect((await speak([good, good, COMMAND])).frames).toEqual([])
    for (const bad of [
      await plan('own'),
      await plan('terminal-mode'),
      [FRAME.plan, Buffer.from('output\0nonsense')] as const,
    ]) {
      const [[kind, text] = [0, ''], ...others] = (await speak([bad, COMMAND])).frames
      expect([kind, others.length]).toEqual([FRAME.status, 0])
      expect(text).toContain('"reason":"setup"')
    }
  })
})

/** Waits between making its socket and looking where the name leads, until `meanwhile` has been done. @returns whether it says that it is ready */
async function isReady(meanwhile: (socket: string) => Promise<void>): Promise<boolean> {
  const directory = await temporaryDirectory()
  const slow = '-qq -o /dev/null -e trace=?open,openat -e inject=?open,openat:delay_enter=500ms:when=1'.split(' ')
  const words = [...slow, ...partWords('launch', ['--fork-server', directory, directory])]
  const server = spawn('strace', words, { stdio: ['ignore', 'ignore', 'inherit', 'ignore', 'pipe'] })
  const ended = once(server, 'exit').then(() => false)
  const owner = server.stdio[4] as Socket
  const ready = once(owner, 'data').then(() => true)
  const name = await until('its socket', () => readdirSync(directory)[0])
  await meanwhile(join(directory, name))
  const answer = await Promise.race([ready, ended])
  owner.destroy()
  await ended
  return answer
}

describeWith(['strace', 'userns'], 'a fork server in a directory to which others may write', () => {
  test('begins where nobody does anything', async () => {
    expect(await isReady(async () => undefined)).toBe(true)
  })

  test('does not begin where somebody listens in the place of its socket', async () => {
    const other = createServer()
    onTestFinished(() => void other.close())
    const takeThePlace = async (socket: string) => {
      await rename(socket, `${socket}.aside`)
      await once(other.listen(socket), 'listening')
    }
    expect(await isReady(takeThePlace)).toBe(false)
  })
})

/** Each first word of a process takes a second to leave it; the server stays a child of its owner. */
const SLOW_WORDS =
  'strace -D -f --seccomp-bpf -qq -o /dev/null -e trace=sendto -e inject=sendto:delay_enter=1s:when=1'.split(' ')

describeWith(['bwrap', 'strace', 'userns'], 'a sandbox that becomes ready', () => {
  test('when its owner has just gone is not left waiting', async () => {
    const to = { directory: await temporaryDirectory(), who: 'gone' }
    expect(await speakTo<object>([await plan('warm')], to, SLOW_WORDS)).toEqual({ ends: true })
  })
})

/* ---- as runs of the library use it ---- */

describeWith(['bwrap', 'userns'], 'runs by a fork server', () => {
  test('have all three streams, their exit code, a deadline, and an end by a signal', async () => {
    const { sandbox } = await open()
    const stdin = Buffer.alloc(3 << 20, 'abcdefg')
    const copied = await sandbox.exec({ command: ['sh', '-c', 'cat; echo err >&2; exit 3'], stdin })
    expect(copied).toMatchObject({ exitCode: 3, stderr: 'err\n', reason: 'exit' })
    expect(copied.stdout.length + copied.truncated.stdout).toBe(stdin.length)
    expect(await run(sandbox, '[ -c /dev/stdin ] && readlink /dev/stdin')).toMatchObject({ exitCode: 0 })
    const ended = new AbortController()
    const onStdout = () => ended.abort('SIGHUP')
    const command = ['sh', '-c', 'trap "exit 9" HUP; echo; sleep 60 & wait']
    expect(await sandbox.exec({ command, signal: ended.signal, onStdout })).toMatchObject({ reason: 'cancelled' })
  })

  test('hold nothing of the process that they are for', async () => {
    const { server } = await open()
    const descriptors = (await readdir(`/proc/${server}/fd`)).map(Number).toSorted((a, b) => a - b)
    // The last is the owner's, for the watcher that the server may start.
    expect(descriptors).toEqual([0, 1, 2, 4, 5, 6, 7])
    expect((await readdir(tmpdir())).filter((name) => name.includes('fork-server'))).toEqual([])
  })

  test('go on when the server is killed, with another one', async () => {
    const { sandbox, server } = await open()
    process.kill(server, 'SIGKILL')
    expect(await run(sandbox, 'echo here')).toMatchObject({ exitCode: 0, stdout: 'here\n' })
    const next = await forked(sandbox)
    expect(next).not.toBe(server)
  })

  test('are reported as lost when their launcher is killed, and the next run leaves nothing of them', async () => {
    const { sandbox, server } = await open()
    const mark = newMark()
    const onStdout = () => {
      for (const pid of childrenOf(server)) process.kill(pid, 'SIGKILL')
    }
    const before = await takeSnapshot({ mark })
    const result = await sandbox.exec({ command: ['sh', '-c', `: ${mark}; echo; sleep 60`], onStdout })
    expect(result.error).toMatchObject({ code: 'BACKEND_FAILED', message: expect.stringContaining('is lost') })
    await run(sandbox, 'true') // A launcher removes what one that was killed has left.
    await expectNothingLeft({ before, mark })
  })
})

/** The first piece of stdin comes when the command has begun and its launcher has been killed, and before this process has read a word of it. */
async function* inputAfterTheEnd(server: number, made: string) {
  process.kill(server, 'SIGSTOP')
  waitBusily(() => readOr(`/proc/${server}/stat`).includes(') T '))
  const launchers = childrenOf(server)
  for (const pid of launchers) signalIfThere(pid, 'SIGSTOP')
  // No launcher has read what was sent before they continue.
  for (let turns = 0; turns < 20; turns += 1) await new Promise(setImmediate)
  for (const pid of [server, ...launchers]) signalIfThere(pid, 'SIGCONT')
  waitBusily(() => readOr(made) !== '')
  for (const pid of childrenOf(server)) signalIfThere(pid, 'SIGKILL')
  waitBusily(() => childrenOf(server).every((pid) => readOr(`/proc/${pid}/stat`).includes(') Z ')))
  yield 'late'
}

/** The launcher of the run before may just end. */
function signalIfThere(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

function waitBusily(isThere: () => boolean): void {
  const last = Date.now() + 10_000
  while (!isThere()) if (Date.now() > last) throw new Error('it did not come')
}

describeWith(['bwrap', 'userns'], 'a command whose launcher is killed before its owner hears that it was taken', () => {
  test.each([
    ['a launcher of its own', 0],
    ['a sandbox that waits', 1],
  ])('is not run a second time: %s', async (_, warm) => {
    const { server } = await open()
    const zone = await temporaryDirectory({ mode: 0o777 })
    const sandbox = await openSandbox({ warm, policy: { zones: [{ hostPath: zone, mode: 'rw', target: zone }] } })
    onTestFinished(() => sandbox.close())
    await run(sandbox, 'true')
    await until('a sandbox that waits', () => sandbox.ready() === warm || undefined)
    const runs = join(zone, 'runs')
    const command = ['sh', '-c', `echo run >>${runs}; sleep 60`]
    const result = await sandbox.exec({ command, stdin: inputAfterTheEnd(server, runs) })
    expect(result.error).toMatchObject({ message: expect.stringContaining('is lost') })
    expect(readFileSync(runs, 'utf8')).toBe('run\n')
  })
})

/* ---- another process that is killed, or changes ---- */

describeWith(['bwrap', 'userns'], 'the owner of a fork server', () => {
  test('that is killed leaves neither server nor run', async () => {
    const mark = newMark()
    const before = await takeSnapshot({ mark })
    const { owner } = await startOwner(`await run(': ${mark}; echo; sleep 60', () => console.log('on'))`)
    await once(owner.stdout, 'data')
    const server = serverOf(owner.pid ?? 0)
    expect(server).toBeDefined()
    expect(childrenOf(server ?? 0)).not.toEqual([])
    owner.kill('SIGKILL')
    await owner
    await expectNothingLeft({ before, mark })
    await until('the end of the server', () => (readOr(`/proc/${server}/cmdline`) === '' ? true : undefined))
  })
})
