/** The process on the host that reads what a restricted command sends: what it may do, what it costs, and when it ends. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { execa } from 'execa'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { statusLine } from '../../src/os/proc-status.ts'
import { runCli } from '../support/cli.ts'
import { newDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { openWorld, type World } from './world.ts'

/** What docs/network.md promises of an idle helper (0.3 MiB), in the unit of /proc. */
const IDLE_KIB = Math.floor(0.3 * 1024)

let world: World

interface More {
  readonly abort?: AbortSignal
  readonly cwd?: string
  readonly under?: readonly string[]
}

const start = (script: string, { abort, cwd, under = [] }: More = {}) =>
  runCli(['--allow-host', 'api.test', '--', 'sh', '-c', script], {
    through: [...world.through, ...under],
    ...(cwd === undefined ? {} : { cwd }),
    ...(abort === undefined ? {} : { abort, stopSignal: 'SIGKILL' }),
  })

const lineOf = async (pid: number, name: string): Promise<string> =>
  statusLine(await readFile(`/proc/${pid}/status`, 'utf8').catch(() => ''), name)

/** Until it holds; the time limit of the test is the only one. */
async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await setTimeout(20)
}

/** A helper whose walls stand. */
async function confinedHelper(): Promise<number> {
  const helper = await world.helper()
  await until(async () => (await lineOf(helper, 'Seccomp')) === '2')
  return helper
}

describeWith('root', 'the helper of a restricted network', () => {
  beforeAll(async () => {
    world = await openWorld({})
  })
  afterAll(() => world.close())

  test('has the walls that it is meant to have, and is small', async () => {
    const { path: cwd, remove } = await newDirectory({ mode: 0o755 })
    const running = start('until [ -e over ]; do sleep 0.05; done', { cwd })
    const helper = await confinedHelper()
    const status = await readFile(`/proc/${helper}/status`, 'utf8')
    const line = (name: string): string => statusLine(status, name)
    expect(line('Uid').split(/\s+/)).toHaveLength(4)
    expect(line('Uid').split(/\s+/)).not.toContain('0')
    expect(line('Gid').split(/\s+/)).not.toContain('0')
    expect(line('Groups').trim()).toBe('')
    expect([line('CapEff'), line('CapPrm'), line('CapInh'), line('CapAmb')].map(Number)).toEqual([0, 0, 0, 0])
    expect([line('NoNewPrivs'), line('Seccomp')]).toEqual(['1', '2'])
    expect(Number.parseInt(line('VmRSS'), 10)).toBeLessThanOrEqual(IDLE_KIB)
    await writeFile(join(cwd, 'over'), '')
    await running
    await remove()
  })

  const ASK = `import socket, struct
question = struct.pack('>6H', 1, 256, 1, 0, 0, 0) + bytes([9]) + b'localhost' + bytes([0, 0, 1, 0, 1])
with socket.create_connection(('198.18.0.1', 53), 60) as s:
    s.sendall(struct.pack('>H', len(question)) + question)
    print(s.recv(4096)[-4:])`

  test('sleeps while it has no descriptor for a client, and serves it when there is one again', async () => {
    const { path: cwd, remove } = await newDirectory({ mode: 0o755 })
    await writeFile(join(cwd, 'ask.py'), ASK)
    const running = start('until [ -e go ]; do sleep 0.05; done; exec /usr/bin/python3 ask.py', { cwd })
    const helper = await confinedHelper()
    const [id = ''] = (await lineOf(helper, 'Uid')).split('\t')
    // As the helper's own user: not every root may change the limits of others.
    const allow = (descriptors: number) =>
      execa('setpriv', [
        '--reuid',
        id,
        '--regid',
        id,
        '--clear-groups',
        'prlimit',
        '--pid',
        `${helper}`,
        `--nofile=${descriptors}:`,
      ])
    const sleeps = async (): Promise<number> => Number(await lineOf(helper, 'voluntary_ctxt_switches'))
    await allow(4)
    const before = await sleeps()
    await writeFile(join(cwd, 'go'), '')
    await until(async () => (await sleeps()) > before + 50)
    await allow(1000)
    expect((await running).stdout.toString()).toBe("b'\\x7f\\x00\\x00\\x01'\n")
    await remove()
  })

  test('refuses to serve with so few descriptors that no connection could be made', async () => {
    const { status, stderr } = await start('true', { under: ['prlimit', '--nofile=700:700', '--'] })
    expect(status).toBe(125)
    expect(stderr.toString()).toContain('net: descriptors')
  })

  test('ends with its run', async () => {
    await start('true')
    expect(await world.helpers()).toEqual([])
  })

  test('ends with a runner that is killed', async () => {
    const killing = new AbortController()
    const running = start('sleep 60', { abort: killing.signal })
    await world.helper()
    killing.abort()
    await running
    await until(async () => (await world.helpers()).length === 0)
  })
})
