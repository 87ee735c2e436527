/**
 * A world (world.ts) with HTTPS servers whose authority the host trusts, and one whose it does not: api.test and other.test on ports 443 and
 * 8443, stranger.test on 9443. Runs in it have a profile with a secret.
 */
import type { ChildProcess } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import type { Result } from '../../src/report/result.ts'
import { newDirectory } from '../support/directory.ts'
import { until } from '../support/processes.ts'
import { resultOf, WAYS, type Way } from './ways.ts'
import { openWorld, startServer, WORLD, type World } from './world.ts'

const BUNDLE = '/etc/ssl/certs/ca-certificates.crt'

interface Servers {
  /** Below programs/; its words are a directory, a port, a log and names. */
  readonly program: string
  /** Port -> names. */
  readonly ports: Readonly<Record<string, readonly string[]>>
}

const ECHO: Servers = {
  program: 'echo-server.mjs',
  ports: { 443: ['api.test', 'other.test'], 8443: ['api.test', 'other.test'], 9443: ['stranger.test'] },
}

export const SECRET = 'hidden-7c1f0d'
const CREDENTIAL = `{ host: api.test, header: Authorization, from: "env:TOKEN", format: "Bearer {}" }`
/** `network` of the profile. */
export const NETWORK = `terminate: true\nallow: [ api.test, other.test ]\ncredentials: [ ${CREDENTIAL} ]`

export interface SecretRun {
  readonly network?: string
  readonly words?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly way?: Way
  readonly through?: readonly string[]
}

export interface TerminationWorld {
  readonly world: World
  readonly directory: string
  /** Requests that servers have got. */
  readonly requests: () => Promise<readonly string[]>
  /** A profile with that network. */
  readonly profileOf: (network: string) => Promise<string>
  readonly run: (command: readonly string[], options?: SecretRun) => Promise<Result>
  /** Terminators of runs in this world. */
  readonly terminators: () => readonly number[]
  /** Waits for the first one. */
  readonly terminator: () => Promise<number>
  readonly close: () => Promise<void>
}

export const curl = (url: string, ...words: readonly string[]) => ['curl', '-sS', '-m', '20', ...words, url]

async function makeCertificates(directory: string, names: ReadonlySet<string>): Promise<void> {
  const make = (name: string, ...words: readonly string[]) => {
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', `${name}.key`]
    const certificate = ['-x509', '-days', '2', '-subj', `/CN=${name}`, '-out', `${name}.pem`]
    return execa('openssl', ['req', ...key, ...certificate, ...words], { cwd: directory })
  }
  for (const ca of ['ca', 'stranger-ca']) await make(ca)
  for (const name of names) {
    const ca = name === 'stranger.test' ? 'stranger-ca' : 'ca'
    const signed = ['-CA', `${ca}.pem`, '-CAkey', `${ca}.key`, '-addext', 'basicConstraints=CA:FALSE']
    await make(name, ...signed, '-addext', `subjectAltName=DNS:${name}`)
  }
}

export async function openTerminationWorld({ program, ports }: Servers = ECHO): Promise<TerminationWorld> {
  const names = new Set(Object.values(ports).flat())
  const world = await openWorld(Object.fromEntries([...names].map((name) => [name, [[WORLD]]])))
  const { path: directory, remove } = await newDirectory({ mode: 0o755 })
  const servers: ChildProcess[] = []
  const close = async (): Promise<void> => {
    for (const server of servers) server.kill('SIGKILL')
    await world.close()
    await remove()
  }
  const log = join(directory, 'requests')
  try {
    await mkdir(join(directory, 'web'))
    await makeCertificates(directory, names)
    await writeFile(log, '')
    const bundle = join(directory, 'bundle.pem')
    await writeFile(bundle, `${await readFile(BUNDLE, 'utf8')}\n${await readFile(join(directory, 'ca.pem'), 'utf8')}`)
    await execa(world.through[0] ?? '', [...world.through.slice(1), 'mount', '--bind', bundle, BUNDLE])
    await writeFile(join(directory, 'token'), SECRET)
    const words = [process.execPath, join(import.meta.dirname, 'programs', program), directory]
    for (const [port, served] of Object.entries(ports))
      servers.push(await startServer([...world.inWorld, ...words, port, log, ...served]))
  } catch (error) {
    await close()
    throw error
  }
  let profiles = 0
  const profileOf = async (network: string): Promise<string> => {
    profiles += 1
    const path = join(directory, `profile-${profiles}.yaml`)
    await writeFile(path, `sandbox:\n  network:\n${network.replace(/^/gm, '    ')}\n`)
    return path
  }
  const terminators = () => world.processes('cmdline', 'dist/terminator.cjs\0')
  return {
    world,
    directory,
    terminators,
    terminator: () => until('a terminator', () => terminators()[0]),
    profileOf,
    close,
    requests: async () => (await readFile(log, 'utf8')).split('\n').filter(Boolean),
    run: async (command, { network = NETWORK, words = [], env = { TOKEN: SECRET }, way = WAYS[0], through } = {}) => {
      const profile = ['--profile', await profileOf(network)]
      return resultOf({ through: through ?? world.through, words: [...profile, ...words], command, way, env })
    },
  }
}
