/** The helper on the host that reads what a restricted command sends: its walls, its bounds, and its end. */
import { existsSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { statusLine } from '../../src/os/proc-status.ts'
import { runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { readOr, until } from '../support/processes.ts'
import { allow, shell } from './ways.ts'
import { openWorld, WORLD, type World } from './world.ts'

/** The promise of docs/guide/performance.md for an idle helper (0.3 MiB), in the unit of /proc. */
const IDLE_KIB = Math.floor(0.3 * 1024)

let world: World

interface More {
  readonly abort?: AbortSignal
  readonly cwd?: string
  readonly under?: readonly string[]
}

const start = (script: string, { abort, cwd, under = [] }: More = {}) =>
  runCli([...allow('api.test'), '--', ...shell(script)], {
    through: [...world.through, ...under],
    ...(cwd === undefined ? {} : { cwd }),
    ...(abort === undefined ? {} : { abort, stopSignal: 'SIGKILL' as const }),
  })

const lineOf = (pid: number, name: string): string => statusLine(readOr(`/proc/${pid}/status`), name)

/** A helper whose walls stand. */
async function confinedHelper(): Promise<number> {
  const helper = await world.helper()
  await until('its walls', () => lineOf(helper, 'Seccomp') === '2' || undefined)
  return helper
}

describeWith('root', 'the helper of a restricted network', () => {
  beforeAll(async () => {
    world = await openWorld({ 'api.test': [[WORLD]] })
    await start('true') // a first run tries what this kernel has, with a helper that ends at once
  })
  afterAll(() => world?.close())

  test('has no id of root, no capability, a filter, bounds, and is small', async () => {
    const cwd = await temporaryDirectory({ mode: 0o755 })
    const running = start('until [ -e over ]; do sleep 0.05; done', { cwd })
    const helper = await confinedHelper()
    const line = (name: string): string => lineOf(helper, name)
    expect(line('Uid').split(/\s+/)).toHaveLength(4)
    expect(line('Uid').split(/\s+/)).not.toContain('0')
    expect(line('Gid').split(/\s+/)).not.toContain('0')
    expect(line('Groups').trim()).toBe('')
    expect(['CapEff', 'CapPrm', 'CapInh', 'CapAmb'].map((name) => Number(line(name)))).toEqual([0, 0, 0, 0])
    expect([line('NoNewPrivs'), line('Seccomp')]).toEqual(['1', '2'])
    const limits = readFileSync(`/proc/${helper}/limits`, 'latin1')
    const most = (name: string): number => Number(new RegExp(`^Max ${name} +\\S+ +(\\d+)`, 'm').exec(limits)?.[1])
    expect({ memory: most('address space'), core: most('core file size'), file: most('file size') }).toEqual({
      memory: 256 << 20,
      core: 0,
      file: 0,
    })
    expect(Number.parseInt(line('VmRSS'), 10)).toBeLessThanOrEqual(IDLE_KIB)
    await writeFile(join(cwd, 'over'), '')
    await running
  })

  test('refuses to serve with so few descriptors that no connection could be made', async () => {
    const { status, stderr } = await start('true', { under: ['prlimit', '--nofile=700:700', '--'] })
    expect(status).toBe(125)
    expect(stderr.toString()).toContain('net: descriptors')
  })

  test('ends with its run, whatever the command leaves behind', async () => {
    await start('sleep 60 & curl -sS http://api.test/say')
    expect(world.helpers()).toEqual([])
  })

  test('ends with a runner that is killed', async () => {
    const killing = new AbortController()
    const running = start('sleep 60', { abort: killing.signal })
    const helper = await world.helper()
    killing.abort()
    await running
    await until('its end', () => !existsSync(`/proc/${helper}`) || undefined)
  })
})
