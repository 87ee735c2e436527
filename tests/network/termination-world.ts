/**
 * A world (world.ts) with HTTPS servers whose authority the host trusts, and one whose it does not: api.test and other.test on ports 443 and
 * 8443, stranger.test on 9443.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { newDirectory } from '../support/directory.ts'
import { openWorld, WORLD, type World } from './world.ts'

const BUNDLE = '/etc/ssl/certs/ca-certificates.crt'
const NAMES = ['api.test', 'other.test', 'stranger.test'] as const

export interface TerminationWorld {
  readonly world: World
  readonly directory: string
  /** Requests that servers have got. */
  readonly requests: () => Promise<readonly string[]>
  readonly close: () => Promise<void>
}

async function makeCertificates(directory: string): Promise<void> {
  const openssl = (...words: readonly string[]) => execa('openssl', words, { cwd: directory })
  const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
  for (const ca of ['ca', 'stranger-ca'])
    await openssl(
      'req',
      '-x509',
      ...ec,
      '-days',
      '2',
      '-subj',
      `/CN=${ca}`,
      '-keyout',
      `${ca}.key`,
      '-out',
      `${ca}.pem`,
    )
  for (const name of NAMES) {
    const ca = name === 'stranger.test' ? 'stranger-ca' : 'ca'
    await openssl('req', '-new', ...ec, '-subj', `/CN=${name}`, '-keyout', `${name}.key`, '-out', `${name}.csr`)
    await writeFile(join(directory, `${name}.ext`), `subjectAltName=DNS:${name}\n`)
    const sign = ['-CA', `${ca}.pem`, '-CAkey', `${ca}.key`, '-CAcreateserial', '-extfile', `${name}.ext`]
    await openssl('x509', '-req', '-in', `${name}.csr`, ...sign, '-days', '2', '-out', `${name}.pem`)
  }
}

async function makeRepository(directory: string): Promise<void> {
  const script = `git init -q made && cd made && echo noted >note && git add note
    git -c user.name=test -c user.email=test@test commit -q -m note
    git clone -q --bare . ../web/repo.git && git -C ../web/repo.git update-server-info`
  await execa('sh', ['-ec', script], { cwd: directory, env: { HOME: directory, GIT_CONFIG_NOSYSTEM: '1' } })
}

async function makeNpmPackage(directory: string): Promise<void> {
  const manifest = { name: 'tiny', version: '1.0.0', main: 'index.js' }
  const [place, web] = [join(directory, 'npm/package'), join(directory, 'web/npm')]
  await mkdir(place, { recursive: true })
  await mkdir(web)
  await writeFile(join(place, 'package.json'), JSON.stringify(manifest))
  await writeFile(join(place, 'index.js'), 'module.exports = "from=tiny"\n')
  await execa('tar', ['-czf', join(web, 'tiny-1.0.0.tgz'), '-C', join(directory, 'npm'), 'package'])
  const version = { ...manifest, dist: { tarball: 'https://api.test/npm/tiny-1.0.0.tgz' } }
  const document = { name: 'tiny', 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': version } }
  await writeFile(join(web, 'tiny'), JSON.stringify(document))
}

export async function openTerminationWorld(): Promise<TerminationWorld> {
  const world = await openWorld(Object.fromEntries(NAMES.map((name) => [name, [[WORLD]]])))
  const { path: directory, remove } = await newDirectory({ mode: 0o755 })
  const servers: ChildProcess[] = []
  const close = async (): Promise<void> => {
    for (const server of servers) server.kill('SIGKILL')
    await world.close()
    await remove()
  }
  try {
    await mkdir(join(directory, 'web'))
    await makeCertificates(directory)
    await makeRepository(directory)
    await makeNpmPackage(directory)
    await writeFile(join(directory, 'requests'), '')
    const bundle = join(directory, 'bundle.pem')
    await writeFile(bundle, `${await readFile(BUNDLE, 'utf8')}\n${await readFile(join(directory, 'ca.pem'), 'utf8')}`)
    await execa(world.through[0] ?? '', [...world.through.slice(1), 'mount', '--bind', bundle, BUNDLE])
    for (const [port, ...names] of [
      ['443', 'api.test', 'other.test'],
      ['8443', 'api.test', 'other.test'],
      ['9443', 'stranger.test'],
    ]) {
      const program = join(import.meta.dirname, 'programs/echo-server.mjs')
      const words = [
        ...world.inWorld,
        process.execPath,
        program,
        directory,
        port ?? '',
        join(directory, 'requests'),
        ...names,
      ]
      const server = spawn(words[0] ?? '', words.slice(1), { stdio: ['ignore', 'pipe', 'inherit'] })
      servers.push(server)
      await once(server.stdout, 'data')
    }
  } catch (error) {
    await close()
    throw error
  }
  const requests = async () => (await readFile(join(directory, 'requests'), 'utf8')).split('\n').filter(Boolean)
  return { world, directory, requests, close }
}
