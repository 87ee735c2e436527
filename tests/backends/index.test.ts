import { describe, expect, test } from 'vitest'
import { BACKENDS, backendNamed, offersFor } from '../../src/backends/index.ts'
import { BACKEND_NAMES, isSandbox, type Need } from '../../src/policy/values.ts'
import { factsOf } from '../plan/world.ts'
import { planFor } from './plans.ts'

test('Every name of a backend leads to its own row', () => {
  expect(BACKENDS.map(({ name }) => name)).toEqual(BACKEND_NAMES)
})

describe.each(BACKENDS.map((backend) => ({ name: backend.name, backend })))('The row of $name', ({ name, backend }) => {
  test('loads what a run needs', async () => {
    expect(await backend.load()).toMatchObject({ build: expect.any(Function), run: expect.any(Function) })
  })

  test('claims walls only where the policy calls it a sandbox', () => {
    const { pid, ipc, fs } = backend.isolation(planFor(name))
    const hasOwn = (need: Need): boolean => !backend.traits.givesUp.includes(need)
    expect({ pid, ipc, isHost: fs === 'host' }).toEqual({
      pid: hasOwn('pid-namespace'),
      ipc: hasOwn('ipc-namespace'),
      isHost: !isSandbox(name),
    })
    expect(hasOwn('zones') && hasOwn('seccomp') && hasOwn('net-none')).toBe(isSandbox(name))
  })

  test('is taken by auto only with walls', () => {
    expect(backend.traits.isAutomatic && !isSandbox(name)).toBe(false)
  })

  test('describes parts with a state, and a reason where one is not in order', async () => {
    const parts = (await backend.describe?.(factsOf({}).facts)) ?? []
    expect(parts.filter(({ state, detail }) => state !== 'ok' && detail === '')).toEqual([])
  })
})

test('Offers for a policy are those of the host with the terms of the policy', () => {
  const { policy, facts } = factsOf({ policy: { backend: 'process' } })
  const offered = offersFor({ policy, facts, permits: { unsandboxed: false, docker: true } })
  expect(offered.map(({ name }) => name)).toEqual(BACKEND_NAMES)
  expect(offered.find(({ name }) => name === 'process')?.barred?.why).toBe(
    'it isolates nothing and must be allowed twice',
  )
  expect(backendNamed('process').offers(facts).unusable).toBeUndefined()
})
