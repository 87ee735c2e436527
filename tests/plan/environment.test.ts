import { describe, expect, test } from 'vitest'
import { commandEnvironment } from '../../src/plan/environment.ts'
import type { Plan } from '../../src/plan/plan.ts'
import { PLAIN_POLICY, PLAIN_TREE, planIn, ro } from './world.ts'

describe('The command gets', () => {
  test('a handful of variables of our own and nothing of the caller', () => {
    const plan = planIn({ request: { environmentNames: ['GITHUB_TOKEN', 'LD_PRELOAD', 'HOME', 'PATH'] } })
    expect(commandEnvironment(plan, PLAIN_POLICY, { GITHUB_TOKEN: 's3cret', HOME: '/home/ann' })).toEqual({
      HOME: '/home/sandbox',
      USER: 'sandbox',
      LANG: 'C.UTF-8',
      TERM: 'dumb',
      PWD: '/workspace',
      PATH: '/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin',
      LLM_DO_SANDBOX: 'namespace',
      LLM_DO_SANDBOX_PROFILE: 'default',
      npm_config_fetch_retries: '0',
      PIP_RETRIES: '0',
      npm_config_update_notifier: 'false',
      NO_UPDATE_NOTIFIER: '1',
      FAKEROOTDONTTRYCHOWN: '1',
      PIP_DISABLE_PIP_VERSION_CHECK: '1',
    })
  })

  test.each<[mode: 'none' | 'restricted' | 'host', retries: string | undefined, notifier: string | undefined]>([
    ['none', '0', 'false'],
    ['restricted', undefined, 'false'],
    ['host', undefined, undefined],
  ])(
    'package managers that try again and search for updates as the network %s lets them',
    (mode, retries, notifier) => {
      const policy = { ...PLAIN_POLICY, network: { ...PLAIN_POLICY.network, mode } }
      const values = commandEnvironment(planIn({ policy }), policy, {})
      expect([values.npm_config_fetch_retries, values.npm_config_update_notifier]).toEqual([retries, notifier])
      const asked = { ...policy, env: { inherit: [], set: { npm_config_fetch_retries: '2' } } }
      expect(commandEnvironment(planIn({ policy: asked }), asked, {}).npm_config_fetch_retries).toBe('2')
    },
  )

  test("the caller's language, terminal and time zone", () => {
    const values = planIn({ request: { locale: { LANG: 'de_DE.UTF-8', TERM: 'xterm', TZ: 'Europe/Berlin' } } }).env
    const followed = values.filter(({ name }) => ['LANG', 'TERM', 'TZ'].includes(name)).map(({ value }) => value)
    expect(followed).toEqual(['de_DE.UTF-8', 'xterm', 'Europe/Berlin'])
  })

  test('what the policy names, whose values are in no plan', () => {
    const policy = {
      ...PLAIN_POLICY,
      env: { inherit: ['GITHUB_*', 'CI', 'LD_PRELOAD'], set: { API_KEY: 'in-the-policy', CI: '1' } },
    }
    const named = { GITHUB_TOKEN: 's3cret', GITHUB_SHA: 'abc', LD_PRELOAD: '/x.so' }
    const host = { ...named, CI: 'host', OTHER: 'x' }
    const plan = planIn({ policy, request: { environmentNames: Object.keys(host) } })
    expect(JSON.stringify(plan)).not.toContain('in-the-policy')
    expect(commandEnvironment(plan, policy, host)).toMatchObject({ ...named, CI: '1', API_KEY: 'in-the-policy' })
    expect(commandEnvironment(plan, policy, host)).not.toHaveProperty('OTHER')
    expect(commandEnvironment(plan, policy, {})).not.toHaveProperty('GITHUB_TOKEN')
  })

  test('its own HOME or PATH when the policy sets one', () => {
    const policy = { ...PLAIN_POLICY, env: { inherit: [], set: { HOME: '/data', PATH: '/x' } } }
    expect(commandEnvironment(planIn({ policy }), policy, {})).toMatchObject({ HOME: '/data', PATH: '/x' })
  })
})

test.each([
  ['an empty name', { inherit: [''], set: {} }],
  ['a name with =', { inherit: [], set: { 'A=B': 'x' } }],
  ['a NUL in a value', { inherit: [], set: { A: 'x\0y' } }],
])('A policy with %s is refused', (_title, env) => {
  expect(() => planIn({ policy: { env } })).toThrow('env.')
})

describe('The command starts', () => {
  const tree = { ...PLAIN_TREE, '/srv/deep/er': 'directory' }
  test.each<[title: string, world: Parameters<typeof planIn>[0], workdir: string]>([
    ['in the workspace', {}, '/workspace'],
    [
      'where the caller stands in a zone',
      { tree, request: { cwd: '/srv/deep/er' }, policy: { zones: [ro('/srv', '/srv')] } },
      '/srv/deep/er',
    ],
    ['where the policy says', { policy: { workdir: '/workspace/data' } }, '/workspace/data'],
    ['below the workspace at a relative directory', { policy: { workdir: 'data' } }, '/workspace/data'],
    ['in a scratch directory', { policy: { workdir: '/tmp' } }, '/tmp'],
    ['in a system directory', { policy: { workdir: '/usr/share' } }, '/usr/share'],
  ])('%s', (_title, world, workdir) => {
    const plan = planIn(world)
    expect(plan.workdir).toBe(workdir)
    expect(plan.env.find(({ name }) => name === 'PWD')?.value).toBe(workdir)
  })

  test('nowhere that does not exist inside', () => {
    expect(() => planIn({ policy: { workdir: '/srv' } })).toThrow('workdir: /srv does not exist inside')
  })
})

describe('a variable that only the flags of a run know', () => {
  const origin = (layer: 'flag' | 'profile') => ({ layer, source: 'x', key: 'env' })
  const planned = (name: string, layers: readonly ('flag' | 'profile')[], inherit: readonly string[] = []) => {
    const origins = { ...PLAIN_POLICY.origins, [`env.set.${name}`]: layers.map(origin) }
    return planIn({ policy: { ...PLAIN_POLICY, env: { inherit, set: { [name]: 'x' } }, origins } })
  }
  const fromOf = ({ env }: Plan, name: string) => env.find((variable) => variable.name === name)?.from

  test('is given, and the name of the plan does not depend on it', () => {
    const [one, other] = [planned('ONE', ['flag']), planned('OTHER', ['flag'])]
    expect([fromOf(one, 'ONE'), fromOf(other, 'OTHER')]).toEqual(['given', 'given'])
    expect(one.hash).toBe(other.hash)
    expect(commandEnvironment(one, { ...PLAIN_POLICY, env: { inherit: [], set: { ONE: 'x' } } }, {})['ONE']).toBe('x')
  })

  test.each([
    ['a profile sets', planned('CI', ['profile', 'flag']), 'CI'],
    ['we set', planned('HOME', ['flag']), 'HOME'],
    ['follows the caller', planned('TZ', ['flag']), 'TZ'],
    ['the policy takes over', planned('CI_JOB', ['flag'], ['CI_*']), 'CI_JOB'],
  ])('is not one that %s', (_, plan, name) => {
    expect(fromOf(plan, name)).toBe('set')
    expect(plan.hash).not.toBe(planned('ONE', ['flag']).hash)
  })
})
