/** The process on the host that reads what a restricted command sends: what it may do, what it costs, and when it ends. */
import { readFile } from 'node:fs/promises'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { statusLine } from '../../src/os/proc-status.ts'
import { runCli } from '../support/cli.ts'
import { describeWith } from '../support/needs.ts'
import { openWorld, type World } from './world.ts'

let world: World

const start = (script: string, abort?: AbortSignal) =>
  runCli(['--allow-host', 'api.test', '--', 'sh', '-c', script], {
    through: world.through,
    ...(abort === undefined ? {} : { abort, stopSignal: 'SIGKILL' }),
  })

describeWith('root', 'the helper of a restricted network', () => {
  beforeAll(async () => {
    world = await openWorld({})
  })
  afterAll(() => world.close())

  test('has the walls that it is meant to have, and is small', async () => {
    const running = start('sleep 3')
    const helper = await world.helper()
    await setTimeout(500)
    const status = await readFile(`/proc/${helper}/status`, 'utf8')
    const line = (name: string): string => statusLine(status, name)
    expect(line('Uid').split('\t')).not.toContain('0')
    expect(line('Groups').trim()).toBe('')
    expect([line('CapEff'), line('CapPrm'), line('CapInh'), line('CapAmb')].map(Number)).toEqual([0, 0, 0, 0])
    expect([line('NoNewPrivs'), line('Seccomp')]).toEqual(['1', '2'])
    expect(Number.parseInt(line('VmRSS'), 10)).toBeLessThanOrEqual(300)
    await running
  })

  test('ends with its run', async () => {
    await start('true')
    expect(await world.helpers()).toEqual([])
  })

  test('ends with a runner that is killed', async () => {
    const killing = new AbortController()
    const running = start('sleep 60', killing.signal)
    await world.helper()
    killing.abort()
    await running
    for (let tries = 0; tries < 40 && (await world.helpers()).length > 0; tries += 1) await setTimeout(50)
    expect(await world.helpers()).toEqual([])
  })
})
