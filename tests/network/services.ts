/**
 * Real servers in the world of a test (world.ts), each started as its own documents say: sshd, PostgreSQL, redis, HTTPS with HTTP/2;
 * packages for git, npm and pip; and the clients that have to be compiled. Everything is prepared once, in one directory.
 */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { newDirectory } from '../support/directory.ts'
import { startServer, type World } from './world.ts'

const PROGRAMS = join(import.meta.dirname, 'programs')
const SOURCES = join(PROGRAMS, 'clients')
/** Of everybody's passwd. */
const NOBODY = 65534

export interface Services {
  /** Files that the clients read and run: `$D` of their scripts. */
  readonly directory: string
  readonly close: () => Promise<void>
}

/** Debian's daemons are unpacked, not installed (scripts/setup): none is to serve a developer's machine. */
export const UNPACKED = join(import.meta.dirname, '../../build/servers')

/** A program by the end of its path, of this machine or unpacked. */
export async function findProgram(directory: string, name: string): Promise<string> {
  for (const root of ['/', UNPACKED]) {
    const found = await execa('sh', ['-c', `ls -d ${join(root, directory)}/${name}`], { reject: false })
    if (found.exitCode === 0) return found.stdout.split('\n').at(-1) ?? ''
  }
  throw new Error(`no ${name} in ${directory}, here or in ${UNPACKED} (hint: make setup-test)`)
}

/* ---- what is fetched from the web server ---- */

export async function makeRepository(directory: string, web: string): Promise<void> {
  const script = `git init -q made && cd made && echo noted >note && git add note
    git -c user.name=test -c user.email=test@test commit -q -m note
    git clone -q --bare . ../repo.git && git -C ../repo.git update-server-info && cp -r ../repo.git '${web}'`
  await execa('sh', ['-ec', script], { cwd: directory, env: { HOME: directory, GIT_CONFIG_NOSYSTEM: '1' } })
}

export async function makeNpmPackage(directory: string, web: string, scheme = 'http'): Promise<void> {
  const manifest = { name: 'tiny', version: '1.0.0', main: 'index.js' }
  const place = join(directory, 'npm/package')
  await mkdir(place, { recursive: true })
  await mkdir(join(web, 'npm'))
  await writeFile(join(place, 'package.json'), JSON.stringify(manifest))
  await writeFile(join(place, 'index.js'), 'module.exports = "from=tiny"\n')
  await execa('tar', ['-czf', join(web, 'npm/tiny-1.0.0.tgz'), '-C', join(directory, 'npm'), 'package'])
  const version = { ...manifest, dist: { tarball: `${scheme}://api.test/npm/tiny-1.0.0.tgz` } }
  const document = { name: 'tiny', 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': version } }
  await writeFile(join(web, 'npm/tiny'), JSON.stringify(document))
}

const WHEEL = `import sys, zipfile
with zipfile.ZipFile(sys.argv[1], 'w') as wheel:
    wheel.writestr('tiny.py', 'said = "from=tiny"\\n')
    wheel.writestr('tiny-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: tiny\\nVersion: 1.0\\n')
    wheel.writestr('tiny-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr('tiny-1.0.dist-info/RECORD', 'tiny.py,,\\ntiny-1.0.dist-info/METADATA,,\\ntiny-1.0.dist-info/WHEEL,,\\n')`

export async function makePythonPackage(web: string): Promise<void> {
  const file = 'tiny-1.0-py3-none-any.whl'
  await mkdir(join(web, 'pip/tiny'), { recursive: true })
  await execa('/usr/bin/python3', ['-c', WHEEL, join(web, 'pip/tiny', file)])
  await writeFile(join(web, 'pip/tiny/index.html'), `<!DOCTYPE html><a href="${file}">${file}</a>\n`)
}

/* ---- clients that are compiled ---- */

async function compileClients(directory: string): Promise<void> {
  const to = (name: string): string => join(directory, name)
  const from = (name: string): string => join(SOURCES, name)
  const env = { HOME: directory, GOCACHE: to('go-cache') }
  await Promise.all([
    execa('gcc', ['-O1', '-o', to('say-glibc'), from('say.c')]),
    execa('musl-gcc', ['-O1', '-static', '-o', to('say-musl'), from('say.c')]),
    execa('go', ['build', '-o', to('say-go'), from('say.go')], { env }),
    execa('rustc', ['-o', to('say-rust'), from('say.rs')]),
    execa('javac', ['-d', directory, from('Say.java')]),
  ])
}

/* ---- servers ---- */

async function makeCertificate(directory: string): Promise<readonly string[]> {
  const files = [join(directory, 'key.pem'), join(directory, 'ca.pem')] as const
  await execa('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'],
    ...['-subj', '/CN=test', '-addext', 'subjectAltName=DNS:api.test,DNS:other.test'],
    ...['-keyout', files[0], '-out', files[1]],
  ])
  return files
}

const PASSWD = `root:*:0:0::/:/bin/sh
sshd:*:${NOBODY}:${NOBODY}::/run/sshd:/bin/false
`

/** In a new mount namespace: it needs /run/sshd and an account. */
async function startSshd(directory: string, { inWorld }: World): Promise<ChildProcess> {
  const at = (name: string): string => join(directory, name)
  for (const name of ['host', 'identity'])
    await execa('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'test', '-f', at(name)])
  const hostKey = await readFile(at('host.pub'), 'utf8')
  await writeFile(at('known_hosts'), `api.test,other.test ${hostKey}`)
  await chmod(at('identity'), 0o644)
  await writeFile(at('passwd'), PASSWD)
  await writeFile(
    at('sshd_config'),
    `HostKey ${at('host')}\nAuthorizedKeysFile ${at('identity.pub')}\nStrictModes no\nUsePAM no\nPidFile none\n`,
  )
  const client = `#!/bin/sh
install -m 600 ${at('identity')} "$HOME/identity"
exec ssh -F none -i "$HOME/identity" -o IdentitiesOnly=yes -o BatchMode=yes -o ConnectTimeout=20 -o GlobalKnownHostsFile=/dev/null \\
  -o UserKnownHostsFile=${at('known_hosts')} -o CheckHostIP=no "$@"
`
  await writeFile(at('ssh'), client, { mode: 0o755 })
  const sshd = await findProgram('usr/sbin', 'sshd')
  const own = `mount -t tmpfs none /run && mkdir -m 755 /run/sshd && mount --bind ${at('passwd')} /etc/passwd
    exec ${sshd} -D -e -f ${at('sshd_config')}`
  return startServer(
    [...inWorld, 'unshare', '--mount', '--propagation', 'private', 'sh', '-ec', own],
    /Server listening on ::/,
  )
}

async function startPostgres(directory: string, { inWorld }: World): Promise<ChildProcess> {
  const data = join(directory, 'postgres')
  await mkdir(data)
  await chown(data, NOBODY, NOBODY)
  const programs = join(await findProgram('usr/lib/postgresql', '*/bin/initdb'), '..')
  const asNobody = [
    'setpriv',
    '--reuid',
    `${NOBODY}`,
    '--regid',
    `${NOBODY}`,
    '--clear-groups',
    '--pdeathsig',
    'KILL',
    '--',
  ]
  const make = [join(programs, 'initdb'), '-D', data, '-A', 'trust', '-U', 'nobody', '--locale', 'C', '--no-sync']
  await execa('setpriv', [...asNobody.slice(1), ...make], { cwd: '/' })
  await writeFile(join(data, 'pg_hba.conf'), 'host all all all trust\n')
  const settings = ['listen_addresses=*', 'unix_socket_directories=', 'fsync=off'].flatMap((setting) => ['-c', setting])
  const server = [join(programs, 'postgres'), '-D', data, ...settings]
  return startServer([...inWorld, ...asNobody, ...server], /ready to accept connections/)
}

/** Debian's redis-tools have the whole server, which is one by the name that it is started with. */
async function startRedis(directory: string, { inWorld }: World): Promise<ChildProcess> {
  const start = `cd ${directory}; exec -a redis-server redis-check-rdb --bind '*' --protected-mode no --save ''`
  return startServer([...inWorld, 'bash', '-c', start], /Ready to accept connections/)
}

async function startSecure(directory: string, { inWorld }: World): Promise<ChildProcess> {
  const files = await makeCertificate(directory)
  return startServer([...inWorld, process.execPath, join(PROGRAMS, 'secure-server.mjs'), ...files], /ready/)
}

export async function openServices(world: World): Promise<Services> {
  const { path: directory, remove } = await newDirectory({ mode: 0o755 })
  await makeRepository(directory, world.files)
  await Promise.all([makeNpmPackage(directory, world.files), makePythonPackage(world.files), compileClients(directory)])
  await cp(join(SOURCES, 'run-clients.py'), join(directory, 'run-clients.py'))
  const started = await Promise.allSettled(
    [startSshd, startPostgres, startRedis, startSecure].map((start) => start(directory, world)),
  )
  const servers = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  const close = async (): Promise<void> => {
    const running = servers.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null)
    for (const server of running) server.kill('SIGINT')
    await Promise.all(running.map((server) => once(server, 'exit')))
    await remove()
  }
  const failed = started.find((one) => one.status === 'rejected')
  if (failed === undefined) return { directory, close }
  await close()
  throw failed.reason
}
