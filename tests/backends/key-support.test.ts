/** Every key on every backend is done, refused or reported; the table of src/backends/key-support.ts says which, and these plans hold it to that. */
import { describe, expect, test } from 'vitest'
import { KEY_SUPPORT, rowOf, type Support } from '../../src/backends/key-support.ts'
import { SandboxError } from '../../src/error.ts'
import { KEY_ROWS } from '../../src/policy/key-table.ts'
import type { SandboxInput } from '../../src/policy/keys/index.ts'
import { BACKEND_NAMES, type BackendName } from '../../src/policy/values.ts'
import { DOCKER, PLAIN_TREE, planIn } from '../plan/world.ts'
import { EFFECTS, NOT_POLICY } from '../policy/effects.ts'
import { mergeLayers } from '../policy/layers.ts'
import { expectFile, withPart } from '../support/generated.ts'
import { keySupportList } from './key-support-list.ts'

const CWD = '/home/ann/project'
const TREE = {
  ...PLAIN_TREE,
  '/h': 'directory',
  '/other': 'directory',
  '/f': 'file',
  '/g': 'file',
  '/agent': 'socket',
  '/etc/ssl/certs/ca-certificates.crt': 'file',
}
const MACHINE = {
  docker: DOCKER,
  landlockAbi: 9,
  kernel: '6.18.0',
  cgroup: {
    rung: 'parent',
    parent: '/sys/fs/cgroup/x',
    controllers: ['cpu', 'memory', 'pids', 'io'],
    lacking: '',
    fix: '',
  },
} as const

interface Planned {
  readonly error?: SandboxError
  /** Without its name and what a warning says. */
  readonly plan?: string
  readonly warnings: readonly string[]
}

const known = new Map<string, Planned>()

/** Many keys are compared with the same plan. */
function planned(values: object, backend: string): Planned {
  const words = JSON.stringify([values, backend])
  const plan = known.get(words) ?? planOf(values, backend)
  known.set(words, plan)
  return plan
}

/** As one types it: the values are those of flags. */
function planOf(values: object, backend: string): Planned {
  const around = { source: 'default.yaml', directory: CWD }
  const layers = [
    { ...around, layer: 'profile' as const, values: { backend } as SandboxInput },
    { ...around, layer: 'flag' as const, source: '--x', values: values as SandboxInput },
  ]
  const policy = mergeLayers(layers, { profile: 'default', home: '/home/ann' })
  try {
    const world = { tree: TREE, policy, machine: MACHINE, request: { sshAgentSocket: '/agent' } }
    const { hash: _, needs: __, warnings, ...plan } = planIn({ ...world, permits: { unsandboxed: true } })
    return { plan: JSON.stringify(plan), warnings }
  } catch (error) {
    if (error instanceof SandboxError) return { error, warnings: [] }
    throw error
  }
}

const KEYS = KEY_ROWS.map(({ key }) => key).filter((key) => !NOT_POLICY.includes(key))

test('every key has a row, and no other has one', () => {
  expect(KEYS.filter((key) => rowOf(key) === undefined)).toEqual([])
  expect(Object.keys(KEY_SUPPORT).filter((key) => !KEYS.some((known) => known.startsWith(key)))).toEqual([])
})

test('docs/reference/backends.md shows it', () => {
  expectFile('docs/reference/backends.md', (text) => withPart(text, 'keys', keySupportList()))
})

/** Values under which the key means anything there; those of the tests of effects elsewhere. */
const ASKED: Readonly<Record<string, object>> = {
  ...Object.fromEntries(
    ['network.terminate', 'network.credentials', 'network.requests'].map((key) => [
      key,
      { network: { mode: 'restricted', terminate: true, requests: ['GET a.example/*'] } },
    ]),
  ),
  'network.grants': { network: { mode: 'restricted', grants: 'later' } },
  sshAgent: { sshAgent: true },
}

const cells = (wanted: readonly Support[]): readonly (readonly [string, BackendName, Support])[] =>
  KEYS.flatMap((key) =>
    BACKEND_NAMES.flatMap((name) => {
      const support = rowOf(key)?.[name]
      return support !== undefined && wanted.includes(support) ? [[key, name, support] as const] : []
    }),
  )

const valuesOf = (key: string): object => ASKED[key] ?? EFFECTS[key]?.[1] ?? {}

/** These need others of their key to be set, or act before and after a plan. */
const WITHOUT_WARNING = ['network.afterSecrets', 'zones[].name', 'zones[].create', 'zones[].optional']

describe('A key that a backend does not do', () => {
  test.each(cells(['needed', 'refused']).filter(([key]) => !key.startsWith('network.credentials[]')))(
    '%s with %s is %s',
    (key, name) => {
      const { error } = planned(valuesOf(key), name)
      // A module is given directories only, which is said when the run is built.
      if (name === 'wasm' && error === undefined)
        expect(['credentials', 'sshAgent', 'zones']).toContain(key.split('[')[0])
      else expect(error?.code).toBe('NO_BACKEND')
    },
  )

  test.each(cells(['reported']).filter(([key]) => !WITHOUT_WARNING.includes(key)))('%s with %s is %s', (key, name) => {
    const { warnings, error } = planned(valuesOf(key), name)
    if (error !== undefined) return // It is refused, which says more.
    const said = warnings.find((line) => line.startsWith(`no effect with the backend ${name}: `)) ?? ''
    const keys = said.split(': ')[1]?.split(', ') ?? []
    expect(keys.some((one) => key.startsWith(one) || one.startsWith(key))).toBe(true)
  })
})

describe('A key that a backend does', () => {
  test.each(cells(['kept']).filter(([key, name]) => key !== 'backend' && name !== 'namespace'))(
    '%s with %s changes the plan',
    (key, name) => {
      const [without, with_] = [EFFECTS[key]?.[0] ?? {}, valuesOf(key)]
      // A key that acts on a plan of the namespace backend acts on this one.
      if (planned(without, 'namespace').plan === planned(with_, 'namespace').plan) return
      const { plan, error } = planned(with_, name)
      if (error === undefined) expect(plan).not.toBe(planned(without, name).plan)
    },
  )
})

test('an image chooses docker, and is refused with the reason where there is none', () => {
  const at = (machine: object, values: object) => {
    const layer = { layer: 'flag' as const, source: '--image', directory: CWD, values: values as SandboxInput }
    const policy = mergeLayers([layer], { profile: 'default', home: '/home/ann' })
    return () => planIn({ tree: TREE, policy, machine: { ...MACHINE, ...machine } })
  }
  for (const values of [{ image: 'alpine:3' }, { runtime: 'python' }]) {
    expect(at({}, values)()).toMatchObject({ backend: 'docker', ...values })
    expect(at({ docker: undefined }, values)).toThrow(
      /namespace cannot be used \((image|runtime): .*docker cannot be used/,
    )
    expect(at({}, { ...values, backend: 'namespace' })).toThrow(/(image|runtime): /)
  }
  expect(at({}, {})()).toMatchObject({ backend: 'namespace' })
})
