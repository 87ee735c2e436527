/** When a daemon is asked again, by clients that count how often they were: both answer as the real ones do. */
import { chmodSync, existsSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { backendNamed } from '../../../src/backends/index.ts'
import { type HostInputs, type Observer, observeHost } from '../../../src/host/probe.ts'
import { hostInputs } from '../../host/inputs.ts'

const INFO = {
  docker: {
    ServerVersion: '1',
    MemoryLimit: true,
    SwapLimit: true,
    CpuCfsQuota: true,
    PidsLimit: true,
    ClientInfo: { Context: 'default' },
  },
  podman: {
    host: { cgroupVersion: 'v2', cgroupControllers: ['memory', 'cpu', 'pids'], serviceIsRemote: false },
    version: { Version: '5.0' },
  },
}

const site = { root: '' }
const at = (...names: readonly string[]): string => join(site.root, ...names)

function write(path: string, text: string): void {
  mkdirSync(join(path, '..'), { recursive: true })
  writeFileSync(path, text)
}

function plantClient(name: keyof typeof INFO, info: unknown = INFO[name]): void {
  write(at('bin', name), `#!/bin/sh\necho >>${at('asked')}\necho '${JSON.stringify(info)}'\n`)
  chmodSync(at('bin', name), 0o755)
}

/** Stands for a daemon's socket: only who made it when counts. */
function startDaemon(): void {
  rmSync(at('socket'), { force: true })
  write(at('socket'), '')
  write(at('docker.pid'), '1')
}

beforeEach(async () => {
  site.root = realpathSync(await mkdtemp(join(tmpdir(), 'llm-do-daemon-')))
  plantClient('docker')
  plantClient('podman')
  startDaemon()
})
afterEach(() => rmSync(site.root, { recursive: true, force: true }))

type Variables = Readonly<Record<string, string>>

async function observed(variables: Variables, some: Partial<HostInputs> = {}) {
  const observers = [backendNamed('docker').observe?.observe as Observer]
  const env = { PATH: at('bin'), HOME: at('home'), ...variables }
  const run = { wantsEngines: false, observers, believe: true, env, cache: at('cache'), ...some }
  return (await observeHost(hostInputs(run))).docker
}

const timesAsked = (): number => (existsSync(at('asked')) ? readFileSync(at('asked'), 'utf8').length : 0)

/** Differences in the second of two runs. */
interface Second {
  readonly variables?: Variables
  readonly inputs?: Partial<HostInputs>
}

const changing = (change: () => void) => (): Second => {
  change()
  return {}
}

/** How often the client was asked by two runs. @param between what happens between them */
async function askedTwice(variables: Variables, between: () => Second = () => ({})): Promise<number> {
  const first = await observed(variables)
  const { variables: others = {}, inputs = {} } = between()
  const second = await observed({ ...variables, ...others }, inputs)
  if (timesAsked() === 1) expect(second).toEqual(first)
  return timesAsked()
}

const DOCKER = (): Variables => ({ DOCKER_HOST: `unix://${at('socket')}` })
const PODMAN = (): Variables => ({ LLM_DO_DOCKER: 'podman' })

describe('docker is asked', () => {
  test('once by two runs', async () => {
    expect(await askedTwice(DOCKER())).toBe(1)
    expect(await observed(DOCKER())).toMatchObject({ program: 'docker', server: { ok: true }, serverVersion: '1' })
  })

  test.each<[title: string, between: () => Second]>([
    ['by who is not about to run a command, as doctor', () => ({ inputs: { believe: false } })],
    ['when there is another daemon', changing(startDaemon)],
    ['when systemd keeps the socket of the one before', changing(() => write(at('docker.pid'), '12'))],
    ['when there is another client', changing(() => plantClient('docker', { ...INFO.docker, ServerVersion: '2' }))],
    ['when its configuration has come', changing(() => write(at('home/.docker/config.json'), '{}'))],
    ['when there are contexts', changing(() => write(at('home/.docker/contexts/meta/1/meta.json'), '{}'))],
    ['by another version', () => ({ inputs: { version: '1.0.1' } })],
    ['with other variables', () => ({ variables: { DOCKER_API_VERSION: '1.40' } })],
    ['where nothing can be remembered', () => ({ inputs: { cache: undefined } })],
  ])('again %s', async (_title, between) => {
    expect(await askedTwice(DOCKER(), between)).toBe(2)
  })

  test.each<[title: string, variables: () => Variables]>([
    ['over the network', () => ({ DOCKER_HOST: 'tcp://127.0.0.1:1' })],
    ['by ssh', () => ({ DOCKER_HOST: 'ssh://host' })],
    ['of a context', () => ({ DOCKER_CONTEXT: 'other' })],
    ['whose configuration lies below the directory of the moment', () => ({ ...DOCKER(), DOCKER_CONFIG: 'config' })],
  ])('each time %s', async (_title, variables) => {
    expect(await askedTwice(variables())).toBe(2)
  })

  test('each time where no file of the daemon tells who is behind the socket, as behind a relay', async () => {
    rmSync(at('docker.pid'))
    expect(await askedTwice(DOCKER())).toBe(2)
  })

  test('each time where contexts were made, of which one may be the default', async () => {
    write(at('home/.docker/contexts/meta/1/meta.json'), '{}')
    expect(await askedTwice({})).toBe(2)
  })

  test.each([
    ['is not there', {}],
    ['cannot hold a limit', { ...INFO.docker, PidsLimit: false }],
    ['is in a machine of its own', { ...INFO.docker, OperatingSystem: 'Docker Desktop' }],
  ])('each time while the daemon %s', async (_title, info) => {
    plantClient('docker', info)
    expect(await askedTwice(DOCKER())).toBe(2)
  })
})

describe('podman is asked', () => {
  test('once by two runs', async () => {
    expect(await askedTwice(PODMAN())).toBe(1)
  })

  test.each<[title: string, between: () => void]>([
    ['when a file of its configuration has come', () => write(at('home/.config/containers/containers.conf'), '')],
    ['when one was written in its place', () => write(at('home/.config/containers/containers.conf.d/a.conf'), 'x')],
    ['when a connection was made', () => write(at('home/.config/containers/podman-connections.json'), '{}')],
  ])('again %s', async (_title, between) => {
    write(at('home/.config/containers/containers.conf.d/a.conf'), '')
    expect(await askedTwice(PODMAN(), changing(between))).toBe(2)
  })

  test('again when the file that a variable names was written', async () => {
    write(at('own.conf'), '')
    const between = changing(() => write(at('own.conf'), 'x'))
    expect(await askedTwice({ ...PODMAN(), CONTAINERS_CONF: at('own.conf') }, between)).toBe(2)
  })

  test.each([[{ CONTAINER_HOST: 'unix:///run/podman.sock' }], [{ CONTAINER_CONNECTION: 'machine' }]])(
    'each time where %j leads elsewhere',
    async (variables) => {
      expect(await askedTwice({ ...PODMAN(), ...variables })).toBe(2)
    },
  )
})
