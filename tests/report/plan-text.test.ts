import { describe, expect, test } from 'vitest'
import { offersFor } from '../../src/backends/index.ts'
import { passedOver } from '../../src/plan/choose-backend.ts'
import type { Origin } from '../../src/policy/values.ts'
import { planText } from '../../src/report/plan-text.ts'
import { DOCKER, factsOf, PLAIN_TREE, planIn, type World, zone } from '../plan/world.ts'

const profile = (source: string, key: string): Origin => ({ layer: 'profile', source: `/shipped/${source}`, key })
const BUILT_IN: Origin = { layer: 'built-in', source: 'built-in', key: 'resources.output' }

const ORIGINS = {
  network: [profile('default.yaml:7', 'network')],
  'resources.memory': [
    profile('default.yaml:9', 'resources.memory'),
    { layer: 'flag', source: '--memory', key: 'resources.memory' },
  ],
  'resources.cpus': [profile('default.yaml:10', 'resources.cpus')],
  'resources.pids': [profile('default.yaml:11', 'resources.pids')],
  'resources.timeout': [{ layer: 'environment', source: 'LLM_DO_EXEC_TIMEOUT', key: 'resources.timeout' }],
  'resources.output': [BUILT_IN],
} as const satisfies Record<string, readonly Origin[]>

function textOf(world: World): string {
  const { policy, request, facts } = factsOf(world)
  const plan = planIn(world)
  const offers = offersFor({ policy, facts, permits: { unsandboxed: false, docker: true } })
  const inputs = { policy: { ...policy, origins: ORIGINS }, facts, offers, needs: plan.needs }
  return planText({ ...inputs, plan, command: request.command, passedOver: passedOver(inputs, plan.backend) })
}

const NO_NAMESPACE = { ok: false, step: 'clone', errno: 'EPERM', message: 'namespaces are forbidden' } as const

describe('The plan for people', () => {
  test.each<[string, World]>([
    ['default', {}],
    [
      'zones',
      {
        tree: { ...PLAIN_TREE, '/srv/cache': 'directory', '/home/ann/project/.git/config': 'file' },
        policy: {
          zones: [
            zone({ mode: 'rw', hostPath: '/home/ann/project' }),
            zone({ mode: 'cow', hostPath: '/srv/cache', target: '/cache' }),
            zone({ mode: 'tmpfs', target: '/scratch', size: 1024 ** 2 }),
          ],
          network: { mode: 'restricted', allow: ['a.example:443'], deny: ['b.example'], publish: ['127.0.0.1:80:80'] },
          env: { inherit: ['CI'], set: { TOKEN: 'hunter2' } },
          protect: ['own/name'],
        },
        request: { environmentNames: ['CI'] },
      },
    ],
  ])('of %s is as in the golden text', (name, world) => {
    expect(textOf(world)).toMatchGolden(`${name}.people.plan.txt`)
  })

  test('of the default fits a screen', () => {
    const lines = textOf({}).split('\n')
    expect(lines.length).toBeLessThanOrEqual(24)
    expect(lines.filter((line) => line.length > 80)).toEqual([])
  })

  test('holds no value of a variable, and no character that moves a cursor', () => {
    const text = textOf({
      policy: { env: { inherit: [], set: { TOKEN: 'hunter2' } } },
      request: { command: ['echo', '\u001b[2J\nfiles none'] },
    })
    expect(text).toContain('set: TOKEN')
    expect(text).not.toMatch(/hunter2|\u001b|^files none/m)
  })

  test('says why the first backend was passed over', () => {
    const machine = {
      engines: { bwrap: NO_NAMESPACE, unshare: NO_NAMESPACE },
      docker: DOCKER,
    } as const
    expect(textOf({ machine })).toMatch(/^backend {4}docker.*\n {11}not namespace (?:lacks|cannot be used)/m)
  })
})
