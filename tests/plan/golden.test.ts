/**
 * Golden plans: policy x captured host -> plan or refusal, byte for byte. A changed line in the diff is a changed promise.
 * The default is whole for one host; another host is what it changes in it, another policy what it changes in the default of its host.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { SandboxError } from '../../src/error.ts'
import type { MachineFacts } from '../../src/host/probe.ts'
import { changes, withoutBuiltInNames } from '../support/changes.ts'
import { printPlan } from './print-plan.ts'
import { PLAIN_POLICY, planIn, type Tree, type World } from './world.ts'

const HOSTS = join(import.meta.dirname, '../hosts')

interface Host {
  readonly machine: MachineFacts
  readonly tree: Tree
}

const HOST_NAMES = readdirSync(HOSTS).flatMap((file) =>
  file.endsWith('.json') ? [file.slice(0, -'.json'.length)] : [],
)
const hostNamed = (name: string): Host => JSON.parse(readFileSync(join(HOSTS, `${name}.json`), 'utf8'))

const HOME: Tree = {
  '/home/ann/project/.git/config': 'file',
  '/home/ann/project/.git/hooks': 'directory',
  '/home/ann/project/data': 'directory',
  '/home/ann/project/notes.txt': 'file',
}

/** On every host, and in no plan. */
const SECRETS: Tree = {
  '/etc/shadow': 'file',
  '/etc/ssh/ssh_host_ed25519_key': 'file',
  '/etc/ssl': 'directory',
  '/etc/ssl/private': 'directory',
  '/root/.ssh/id_ed25519': 'file',
}

const CASES: Readonly<Record<string, World>> = {
  default: {},
  'restricted-network': { policy: { network: { mode: 'restricted', allow: ['example.com'], deny: [] } } },
  rates: { policy: { resources: { ...PLAIN_POLICY.resources, writeBps: 1_048_576, readIops: 100 } } },
  'half-a-processor': { policy: { resources: { ...PLAIN_POLICY.resources, cpus: 0.5 } } },
}

/** Every host sees the default; the rest where it says something new. */
const ROWS: readonly (readonly [name: string, host: string])[] = [
  ...HOST_NAMES.map((host) => ['default', host] as const),
  ...['restricted-network', 'rates'].map((name) => [name, 'debian-12-user'] as const),
  ...['rates', 'half-a-processor'].map((name) => [name, 'systemd-user'] as const),
]

interface Decision {
  readonly extension: 'plan.json' | 'err'
  readonly text: string
}

function decided(name: string, host: string): Decision {
  const { machine, tree } = hostNamed(host)
  const world = CASES[name] ?? {}
  try {
    const plan = planIn({ ...world, machine, tree: { ...tree, ...SECRETS, ...HOME, ...world.tree } })
    return { extension: 'plan.json', text: printPlan(withoutBuiltInNames(plan)) }
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error
    const { code, message, hint, problems } = error
    return {
      extension: 'err',
      text: [`${code}: ${message}`, `hint: ${hint}`, ...problems.map((problem) => `- ${problem}`), ''].join('\n'),
    }
  }
}

const defaults = new Map<string, string>()
function defaultOn(host: string): string {
  const text = defaults.get(host) ?? decided('default', host).text
  defaults.set(host, text)
  return text
}

describe('On captured hosts', () => {
  test.each(ROWS)('the policy %s on %s comes to what was reviewed', (name, host) => {
    const { extension, text } = decided(name, host)
    const base = name === 'default' ? 'debian-12-user' : host
    if ((name === 'default' && host === base) || extension === 'err')
      expect(text).toMatchGolden(`${name}.${host}.${extension}`)
    else expect(changes(defaultOn(base), text)).toMatchGolden(`${name}.${host}.plan.changes`)
  })
})
