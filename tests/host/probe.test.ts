import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { backendNamed } from '../../src/backends/index.ts'
import type { Probe } from '../../src/host/facts.ts'
import { type HostInputs, type Observer, observeHost } from '../../src/host/probe.ts'
import { hostInputs } from './inputs.ts'

const OF_DOCKER = [backendNamed('docker').observe?.observe as Observer]
const site: { root: string; tried: string[] } = { root: '', tried: [] }

/** A program that answers `--version` and notes that it was started. */
function program(name: string, text: string, mode = 0o755): void {
  const file = join(site.root, name)
  mkdirSync(join(file, '..'), { recursive: true })
  writeFileSync(file, `#!/bin/sh\n${text}\n`)
  chmodSync(file, mode)
}

function inputs(some: Partial<HostInputs> = {}, probe: Probe = { ok: true }): HostInputs {
  const probeEngine: HostInputs['probeEngine'] = async (engine) => {
    site.tried.push(engine)
    return probe
  }
  return hostInputs({ env: { PATH: join(site.root, 'bin') }, probeEngine, ...some })
}

beforeEach(() => {
  site.root = realpathSync(mkdtempSync(join(tmpdir(), 'llm-do-probe-')))
  site.tried = []
})
afterEach(() => rmSync(site.root, { recursive: true, force: true }))

describe('Of the machine', () => {
  test('its numbers are those of this process', async () => {
    const facts = await observeHost(inputs())
    expect(facts).toMatchObject({
      platform: process.platform,
      arch: process.arch,
      uid: process.getuid?.(),
      gid: process.getgid?.(),
      landlockAbi: 4,
    })
    expect(facts.capabilities).toMatch(/^[0-9a-f]{16}$/)
    expect(facts.cpus).toBeGreaterThan(0)
    expect(facts.bootId).toMatch(/^[0-9a-f-]{36}$/)
  })

  test('programs are found on PATH with their versions', async () => {
    program('bin/bwrap', 'echo bubblewrap 0.9.0')
    expect(await observeHost(inputs())).toMatchObject({
      bwrap: { path: join(site.root, 'bin/bwrap'), version: '0.9.0', setuid: false },
      engines: { bwrap: { ok: true }, unshare: { ok: true } },
    })
    expect(site.tried).toEqual(['unshare', 'bwrap'])
  })

  const fails: Probe = { ok: false, step: 'engine', errno: 'EPERM', message: 'no' }
  test.each<[what: string, tried: readonly string[], some: Partial<HostInputs>, probe?: Probe]>([
    ['the engine auto needs', ['unshare'], { engine: 'auto' }],
    ['the engine unshare needs', ['unshare'], { engine: 'unshare' }],
    ['the engine bwrap needs', ['bwrap'], { engine: 'bwrap' }],
    ['the other engine, when one does not work', ['unshare', 'bwrap'], { engine: 'auto' }, fails],
    ['nothing, when namespaces are not wanted', [], { wantsEngines: false }],
  ])('no more is tried than %s', async (_what, tried, some, probe) => {
    program('bin/bwrap', 'echo bubblewrap 0.9.0')
    const { engines } = await observeHost(inputs(some, probe))
    expect(site.tried).toEqual(tried)
    for (const engine of ['unshare', 'bwrap'] as const)
      if (!tried.includes(engine)) expect(engines[engine]).toMatchObject({ ok: false, message: 'not tried' })
  })

  test('a missing program is a failed probe', async () => {
    const facts = await observeHost(inputs())
    expect(facts.bwrap).toBeUndefined()
    expect(facts.engines.bwrap).toMatchObject({ ok: false, errno: 'ENOENT' })
  })

  test('a setuid program is never started', async () => {
    program('bin/bwrap', `touch ${site.root}/started; echo bubblewrap 0.9.0`, 0o4755)
    const facts = await observeHost(inputs())
    expect(facts.bwrap).toMatchObject({ setuid: true, version: '' })
    expect(site.tried).toEqual(['unshare'])
    expect(() => realpathSync(join(site.root, 'started'))).toThrow()
  })

  test('a container engine is asked only when it is wanted, and podman by its variable', async () => {
    program(
      'bin/podman',
      `echo '{"host":{"cgroupVersion":"v2","cgroupControllers":["memory"]},"version":{"Version":"5.0"}}'`,
    )
    const env = { PATH: join(site.root, 'bin'), LLM_DO_DOCKER: 'podman' }
    expect((await observeHost(inputs({ env }))).docker).toBeUndefined()
    expect((await observeHost(inputs({ env, observers: OF_DOCKER }))).docker).toMatchObject({
      program: 'podman',
      clientVersion: '5.0',
      server: { ok: true },
      limits: ['memory', 'swap'],
    })
  })

  test('a daemon that does not answer is a failed probe with its message', async () => {
    program('bin/docker', 'echo "Cannot connect to the Docker daemon" >&2; exit 1')
    expect((await observeHost(inputs({ observers: OF_DOCKER }))).docker?.server).toMatchObject({
      ok: false,
      message: 'Cannot connect to the Docker daemon',
    })
  })

  test('a container engine that lies in the tree of the caller is not asked', async () => {
    program('bin/docker', `echo '{"ServerVersion":"1"}'`)
    expect((await observeHost(inputs({ observers: OF_DOCKER }))).docker).toBeDefined()
    expect((await observeHost(inputs({ observers: OF_DOCKER, notBelow: [site.root] }))).docker).toBeUndefined()
  })
})

describe('A program is not taken for the host', () => {
  const withMode = (mode: number) => () => {
    chmodSync(join(site.root, 'bin/bwrap'), mode)
    return {}
  }
  test.each<[title: string, arrange: () => Partial<HostInputs>]>([
    ['when it lies in a directory that the command may write', () => ({ notBelow: [site.root] })],
    ['when anybody may write it', withMode(0o777)],
    ['when it cannot be executed', withMode(0o644)],
    ['when its PATH entry is relative', () => ({ env: { PATH: '.:bin:' } })],
  ])('%s', async (_title, arrange) => {
    program('bin/bwrap', 'echo bubblewrap 0.9.0')
    expect((await observeHost(inputs())).bwrap).toBeDefined()
    expect((await observeHost(inputs(arrange()))).bwrap).toBeUndefined()
  })

  test('and the search goes on behind it', async () => {
    program('planted/bwrap', 'echo bubblewrap 9.9.9')
    program('bin/bwrap', 'echo bubblewrap 0.9.0')
    const env = { PATH: `${site.root}/planted:${site.root}/bin` }
    expect((await observeHost(inputs({ env, notBelow: [join(site.root, 'planted')] }))).bwrap?.version).toBe('0.9.0')
  })
})

describe('What was found out is remembered', () => {
  const twice = async (second: Partial<HostInputs>, probe: Probe = { ok: true }): Promise<readonly string[]> => {
    const cache = join(site.root, 'cache')
    await observeHost(inputs({ engine: 'bwrap', cache, ...(second.cache === undefined ? {} : second) }, probe))
    site.tried = []
    await observeHost(inputs({ engine: 'bwrap', cache, ...second }, probe))
    return site.tried
  }

  beforeEach(() => program('bin/bwrap', 'echo bubblewrap 0.9.0'))

  const works: Probe = { ok: true }
  const rebuilt = { nativePrograms: () => ({ probe: works, stamp: 'rebuilt' }) }
  const failed: Probe = { ok: false, step: 'bwrap', errno: 'EPERM', message: '' }
  test.each<[title: string, second: Partial<HostInputs>, tried: readonly string[], probe?: Probe]>([
    ['for the same machine, programs and version', {}, []],
    ['for each engine by itself', { engine: 'all' }, ['unshare']],
    ['not for another version of ours', { version: '1.0.1' }, ['bwrap']],
    ['not for other native programs', rebuilt, ['bwrap']],
    ['not when no engine works, so that a repair is seen', {}, ['bwrap'], failed],
    ['nowhere when the cache cannot be written', { cache: '/dev/null/x' }, ['bwrap']],
  ])('%s', async (_title, second, tried, probe) => {
    expect(await twice(second, probe)).toEqual(tried)
  })

  test('not when an engine failed while the other one worked: it may have been chance', async () => {
    const cache = join(site.root, 'cache')
    const failing = new Set(['bwrap'])
    const probeEngine: HostInputs['probeEngine'] = async (engine) => {
      site.tried.push(engine)
      return failing.delete(engine)
        ? { ok: false, step: 'clone', errno: 'EAGAIN', message: 'clone: EAGAIN' }
        : { ok: true }
    }
    const first = await observeHost(inputs({ cache, probeEngine }))
    expect(first.engines).toMatchObject({ unshare: { ok: true }, bwrap: { ok: false } })
    site.tried = []
    const second = await observeHost(inputs({ cache, probeEngine }))
    expect(second.engines).toEqual({ unshare: { ok: true }, bwrap: { ok: true } })
    expect(site.tried).toEqual(['bwrap'])
  })

  test('not when the kernel did not say which Landlock it has', async () => {
    const cache = join(site.root, 'cache')
    const landlockAbi = async (): Promise<number> => {
      throw new Error('launch did not answer')
    }
    await expect(observeHost(inputs({ cache, landlockAbi }))).rejects.toThrow('launch did not answer')
    expect((await observeHost(inputs({ cache }))).landlockAbi).toBe(4)
  })

  test('not when the program is another one', async () => {
    const cache = join(site.root, 'cache')
    await observeHost(inputs({ cache }))
    program('bin/bwrap', 'echo bubblewrap 0.10.0 # newer')
    expect((await observeHost(inputs({ cache }))).bwrap?.version).toBe('0.10.0')
  })
})

describe('A network by name', () => {
  const none: Probe = { ok: false, step: 'network: nftables', errno: 'EPROTONOSUPPORT', message: 'no nftables' }
  const ways = (works: readonly string[]): Partial<HostInputs> => ({
    wantsNetwork: true,
    probeNetwork: async (by, engine) => {
      site.tried.push(`${engine} ${by}`)
      return works.includes(by) ? { ok: true } : none
    },
  })

  test('is not tried unless the policy has one', async () => {
    expect(await observeHost(inputs({ ...ways(['nftables']), wantsNetwork: false }))).not.toHaveProperty(
      'restrictedNetwork',
    )
    expect(site.tried).toEqual(['unshare'])
  })

  test.each<[works: readonly string[], fact: object]>([
    [['nftables', 'listeners'], { ok: true, by: 'nftables', lacking: '' }],
    [['listeners'], { ok: true, by: 'listeners', lacking: 'no nftables' }],
    [[], none],
  ])('is made by the first way that works of %j', async (works, fact) => {
    expect(await observeHost(inputs(ways(works)))).toMatchObject({ restrictedNetwork: fact })
  })

  test('is tried with the engine that works, and a run that wants one believes in none', async () => {
    program('bin/bwrap', 'echo bubblewrap 0.9.0')
    const probeEngine: HostInputs['probeEngine'] = async (engine) => (engine === 'bwrap' ? { ok: true } : none)
    await observeHost(inputs({ ...ways(['nftables']), engine: 'auto', believe: true, probeEngine }))
    expect(site.tried).toEqual(['bwrap nftables'])
  })

  test('is remembered where it is made by nftables, and else tried again, so that a repair is seen at once', async () => {
    const cache = join(site.root, 'cache')
    const tryTwice = async (works: readonly string[]): Promise<readonly string[]> => {
      site.tried = []
      for (let run = 0; run < 2; run += 1) await observeHost(inputs({ ...ways(works), engine: 'unshare', cache }))
      return site.tried.filter((tried) => tried !== 'unshare')
    }
    expect(await tryTwice(['listeners'])).toEqual(Array(2).fill(['unshare nftables', 'unshare listeners']).flat())
    expect(await tryTwice(['nftables'])).toEqual(['unshare nftables'])
  })
})

describe('Before a run', () => {
  const believing = (some: Partial<HostInputs> = {}): HostInputs =>
    inputs({ engine: 'auto', believe: true, cache: join(site.root, 'cache'), ...some })
  const failing: HostInputs['probeEngine'] = async (engine) =>
    engine === 'unshare' ? { ok: false, step: 'clone', errno: 'EPERM', message: '' } : { ok: true }

  test('our own engine is believed, and nothing is started', async () => {
    program('bin/bwrap', `touch ${site.root}/started`)
    const facts = await observeHost(believing())
    expect(facts).toMatchObject({
      engines: { unshare: { ok: true }, bwrap: { message: 'not tried' } },
      untried: 'unshare',
    })
    expect(site.tried).toEqual([])
    expect(() => realpathSync(join(site.root, 'started'))).toThrow()
  })

  test('what is only believed is not remembered', async () => {
    await observeHost(believing())
    expect((await observeHost(believing())).untried).toBe('unshare')
    await observeHost(believing({ believe: false }))
    expect(site.tried).toEqual(['unshare'])
    expect((await observeHost(believing())).untried).toBeUndefined()
  })

  test('nothing is believed of native programs that are not trusted', async () => {
    const nativePrograms: HostInputs['nativePrograms'] = () => ({
      probe: { ok: false, step: 'native programs', errno: '', message: 'can be written by others' },
      stamp: '',
    })
    const facts = await observeHost(believing({ nativePrograms }))
    expect(facts.engines.unshare).toMatchObject({ ok: false, message: 'can be written by others' })
    expect(facts.untried).toBeUndefined()
  })

  test("bwrap is tried, since it is another user's", async () => {
    program('bin/bwrap', 'echo bubblewrap 0.9.0')
    const facts = await observeHost(believing({ engine: 'bwrap' }))
    expect(facts).toMatchObject({ bwrap: { version: '0.9.0' }, engines: { bwrap: { ok: true } } })
    expect(site.tried).toEqual(['bwrap'])
  })

  test('bwrap is used at once where it is what is known to work', async () => {
    program('bin/bwrap', 'echo bubblewrap 0.9.0')
    await observeHost(believing({ believe: false, probeEngine: failing }))
    const facts = await observeHost(believing())
    expect(facts).toMatchObject({
      bwrap: { version: '0.9.0' },
      engines: { unshare: { ok: false }, bwrap: { ok: true } },
    })
    expect(facts.untried).toBeUndefined()
    expect(site.tried).toEqual([])
  })
})
