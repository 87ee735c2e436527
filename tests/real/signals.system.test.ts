/** The command's signals: they reach it, whichever of our programs gets them, and nothing else happens. Least of all a debugger. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readlinkSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { NODE_WITHOUT_DEBUGGER } from '../../src/contract.ts'
import { PASSED_SIGNALS } from '../../src/os/passed-signals.ts'
import { NODES } from '../cli/node-options.ts'
import { backgroundOf } from '../run/background.ts'
import { programFor } from '../support/cli.ts'
import { describeWith } from '../support/needs.ts'
import { descendantsOf, readOr, TIED, until } from '../support/processes.ts'
import { currentUser } from '../support/users.ts'
import { directoryWith } from './directory.ts'

const program = programFor(currentUser(), 'llm-do')

interface Started {
  readonly child: ChildProcess
  readonly said: () => string
}

async function start(words: readonly string[], options: { home?: string; tied?: boolean } = {}): Promise<Started> {
  const [home, cwd] = [options.home ?? (await directoryWith()), await directoryWith()]
  const env = {
    PATH: process.env.PATH,
    TMPDIR: process.env.TMPDIR,
    XDG_RUNTIME_DIR: process.env.XDG_RUNTIME_DIR,
    HOME: home,
  }
  const [file = '', ...rest] = [...(options.tied === false ? [] : TIED), ...words]
  const child = spawn(file, rest, { cwd, env, stdio: ['pipe', 'pipe', 'pipe'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const out: Buffer[] = []
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (bytes: Buffer) => out.push(bytes))
  return { child, said: () => Buffer.concat(out).toString() }
}

const status = (pid: number, key: string): bigint =>
  BigInt(
    `0x${/^\w+:\t([0-9a-f]+)$/m.exec(readOr(`/proc/${pid}/status`).replace(new RegExp(`[^]*^(?=${key})`, 'm'), ''))?.[1] ?? 0}`,
  )
const HELD = PASSED_SIGNALS.filter((name) => name !== 'SIGHUP')
/** The last handler of our program stands: they are set one after another. */
const isHeld = (pid: number): true | undefined => {
  const caught = status(pid, 'SigCgt')
  return HELD.every((name) => (caught >> BigInt(constants.signals[name] - 1)) & 1n) ? true : undefined
}

/** Inodes of TCP sockets of this network that listen. */
const listening = (): ReadonlySet<string> =>
  new Set(
    ['tcp', 'tcp6'].flatMap((file) =>
      readOr(`/proc/net/${file}`)
        .split('\n')
        .map((line) => line.trim().split(/\s+/))
        .filter((words) => words[3] === '0A')
        .map((words) => words[9] ?? ''),
    ),
  )

function listens(pid: number): boolean {
  const inodes = listening()
  return readdirSync(`/proc/${pid}/fd`).some((fd) => {
    try {
      return inodes.has(/^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? '')
    } catch {
      return false // It was closed meanwhile.
    }
  })
}

const COUNTED = ['HUP', 'USR1', 'USR2', 'ALRM'] as const
/** Says which signals it got, and ends when it got all. */
const COUNTS = `n=0; ${COUNTED.map((name) => `trap 'echo got ${name}; n=$((n+1))' ${name}; `).join('')}echo ready; while [ $n -lt ${COUNTED.length} ]; do sleep 0.05; done; exit 3`

/** Each is waited for: two of them at once may reach a shell in any order. */
async function expectEach({ child, said }: Started): Promise<void> {
  const ended = once(child, 'close')
  await until('the command, ready', () => (said().includes('ready') ? true : undefined))
  for (const name of COUNTED) {
    child.kill(`SIG${name}`)
    await until(name, () => (said().includes(`got ${name}`) ? true : undefined))
  }
  expect(await ended).toEqual([3, null])
}

const EXEC = [program, 'exec', '--timeout', '60s']

describeWith('userns', 'signals of a caller reach the command, which ends as it wants', () => {
  test('by node, and by the client', async () => {
    const home = await directoryWith()
    for (const _ of ['first', 'repeated']) await expectEach(await start([...EXEC, '-c', COUNTS], { home }))
  })

  test.each([
    ['--engine', 'bwrap'],
    ['--backend', 'no-namespaces', '--no-workspace', '--workdir', '/'],
    ['--tty'],
    ['--explain'],
  ])('with %s %s %s %s %s', async (...options) => {
    await expectEach(await start([...EXEC, ...options, '-c', COUNTS]))
  })

  test('by `exec --in`, and those of its supervisor reach the first one', async () => {
    const { start: begin, cwd, llmDo, listed, ended } = await backgroundOf(currentUser())
    const name = await begin('--', 'sh', '-c', COUNTS)
    await expectEach(await start([program, 'exec', '--in', name, '--', 'sh', '-c', COUNTS], { home: cwd }))
    const launch = (await listed(name))?.pid ?? 0
    const supervisor = Number(/^PPid:\t(\d+)$/m.exec(readOr(`/proc/${launch}/status`))?.[1])
    expect(commandOf(supervisor)).toMatch(/^node .*cli/)
    const log = async () => (await llmDo(['logs', name])).out
    for (const one of COUNTED) {
      process.kill(supervisor, `SIG${one}`)
      await expect.poll(log).toContain(`got ${one}`)
    }
    await expect.poll(() => ended(name)).toMatchObject({ result: { reason: 'exit', exitCode: 3 } })
  })
})

describe('no process of ours opens a debugger', () => {
  test.each(NODES)('by node $major before our program has begun; without our word it does', async ({ file }) => {
    const wait = 'console.log("ready"); setInterval(() => {}, 1000)'
    const tryIt = async (word: string) => {
      const { child, said } = await start([file, word, '-e', wait])
      await until('node', () => (said().includes('ready') ? true : undefined))
      child.kill('SIGUSR1')
      await until('the debugger or its refusal', () => /Debugger listening|Unable to resolve/.exec(said()) ?? undefined)
      return listens(child.pid ?? 0)
    }
    expect(await tryIt('--inspect-port=0')).toBe(true)
    expect(await tryIt(NODE_WITHOUT_DEBUGGER)).toBe(false)
  })

  const KINDS = [
    ['the supervision of a run', ['exec', '--explain', '--', 'sleep', '60']],
    ['mcp', ['mcp']],
    ['fleet-server', ['fleet-server']],
    ['batch', ['batch', '/dev/stdin']],
    ['the doctor', ['doctor', '--self-test']],
  ] as const
  test.each(KINDS)('%s, whatever it gets from its first moment on', async (_, words) => {
    const { child } = await start([program, ...words])
    const pid = child.pid ?? 0
    await until('our handlers', () => {
      if (commandOf(pid).includes('cli')) process.kill(pid, 'SIGUSR1')
      return isHeld(pid)
    })
    for (const name of HELD) process.kill(pid, name)
    process.kill(pid, 'SIGUSR1')
    await until('the delivery', () => (status(pid, 'SigPnd') === 0n && status(pid, 'ShdPnd') === 0n ? true : undefined))
    expect(listens(pid)).toBe(words[0] === 'fleet-server' && listens(pid))
    expect([child.exitCode, child.signalCode]).toEqual([null, null])
    expect(
      [pid, ...descendantsOf(pid)]
        .map(commandOf)
        .filter((line) => line.startsWith('node') && !line.includes(NODE_WITHOUT_DEBUGGER)),
    ).toEqual([])
  })

  test('the terminator', async () => {
    const { child } = await start([
      process.execPath,
      NODE_WITHOUT_DEBUGGER,
      join(import.meta.dirname, '../../dist/terminator.cjs'),
    ])
    const pid = child.pid ?? 0
    await until('our handlers', () => isHeld(pid))
    for (const name of HELD) process.kill(pid, name)
    await until('the delivery', () => (status(pid, 'ShdPnd') === 0n ? true : undefined))
    expect(listens(pid)).toBe(false)
    expect([child.exitCode, child.signalCode]).toEqual([null, null])
  })
})

const commandOf = (pid: number): string => readOr(`/proc/${pid}/cmdline`).replaceAll('\0', ' ')
