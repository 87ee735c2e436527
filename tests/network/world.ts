/**
 * A host and the world around it, each in a new network namespace, so that nothing of the real machine's network takes part.
 * All addresses are public ones, so that nothing is refused for being private by accident, and the host has default routes: the
 * host reaches everything that a sandbox cannot. The host's name server is ours and writes down every question.
 *
 *     host  203.0.114.1, .2  ── veth ──  203.0.114.10, 2a11:1111::10  world
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { readdirSync, readlinkSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { newDirectory } from '../support/directory.ts'
import { commOf, readOr, until } from '../support/processes.ts'

export const WORLD = '203.0.114.10'
export const WORLD_V6 = '2a11:1111::10'
export const HOST = '203.0.114.1'
export const HOST_V6 = '2a11:1111::1'
/** Secondary: connections to it come from HOST. */
export const HOST_SECOND = '203.0.114.2'
/** Of no interface: a local route makes its whole range the host's (AnyIP). */
export const HOST_ANY = '203.0.115.9'

const PROGRAMS = join(import.meta.dirname, 'programs')

/** name -> answers, one a question and the last for ever. */
export type Zone = Readonly<Record<string, readonly (readonly string[] | 'fail')[]>>

export interface World {
  /** Words before a program that runs on the host. */
  readonly through: readonly string[]
  /** Words before a program that serves in the world. */
  readonly inWorld: readonly string[]
  /** Questions to the host's name server. */
  readonly questions: () => Promise<readonly string[]>
  /** Content that the servers of the world serve at `/`. */
  readonly files: string
  /** Processes on this host with that in `/proc/PID/FILE`. */
  readonly processes: (file: 'comm' | 'cmdline', text: string) => readonly number[]
  /** Helpers of restricted sandboxes that stand on this host. */
  readonly helpers: () => readonly number[]
  /** Waits for the first one. */
  readonly helper: () => Promise<number>
  readonly close: () => Promise<void>
}

/** Starts a server that dies with this worker, and waits until it has said that it serves: by anything, or by what fits `said`. */
export async function startServer(words: readonly string[], said?: RegExp): Promise<ChildProcess> {
  const server = spawn('setpriv', ['--pdeathsig', 'KILL', '--', ...words], {
    stdio: ['ignore', 'pipe', said === undefined ? 'inherit' : 'pipe'],
  })
  let text = ''
  await new Promise<void>((resolve, reject) => {
    for (const stream of [server.stdout, server.stderr])
      stream?.on('data', (bytes: Buffer) => {
        text = `${text}${bytes}`.slice(-4096)
        if (said === undefined || said.test(text)) resolve()
      })
    server.once('error', reject)
    server.once('exit', (status) => reject(new Error(`${words.join(' ')} ended with ${status}: ${text}`)))
  })
  return server
}

const STAY = ['sh', '-c', 'echo ready; exec sleep 3600']

/** IPv6 forms of IPv4 addresses. The world takes them to be its own, as a translator does that passes everything on. */
const TRANSLATED = ['64:ff9b::/96', '2002::/16']

const LINKS = (world: number): readonly string[] => [
  'ip link set lo up',
  `ip link add h0 type veth peer name w0 netns ${world}`,
  `ip addr add ${HOST}/24 dev h0`,
  `ip addr add ${HOST_SECOND}/24 dev h0`,
  `ip addr add ${HOST_V6}/64 dev h0 nodad`,
  'ip link set h0 up',
  'ip route add local 203.0.115.0/24 dev lo',
  `ip route add default via ${WORLD}`,
  ...TRANSLATED.map((range) => `ip route add ${range} via ${WORLD_V6}`),
]
const WORLD_LINKS = [
  'ip link set lo up',
  `ip addr add ${WORLD}/24 dev w0`,
  `ip addr add ${WORLD_V6}/64 dev w0 nodad`,
  'ip link set w0 up',
  // Everything on the way out arrives here, whichever address it is for.
  'ip route add local 0.0.0.0/1 dev lo',
  ...['169.254.0.0/16', '172.16.0.0/12', '192.168.0.0/16'].map((range) => `ip route add local ${range} dev lo`),
  ...TRANSLATED.map((range) => `ip route add local ${range} dev lo`),
]

function namespaceOf(pid: string): string {
  try {
    return readlinkSync(`/proc/${pid}/ns/net`)
  } catch {
    return '' // It has ended.
  }
}

export interface WorldOptions {
  /** The servers of the world are on the host, too. */
  readonly hostServes?: boolean
}

export async function openWorld(zone: Zone, { hostServes = false }: WorldOptions = {}): Promise<World> {
  const { path, remove } = await newDirectory({ mode: 0o755 })
  const files = join(path, 'files')
  await mkdir(files)
  await writeFile(join(path, 'resolv.conf'), 'nameserver 127.0.0.1\n')
  await writeFile(join(path, 'hosts'), '127.0.0.1 localhost\n')
  await writeFile(join(path, 'nsswitch.conf'), 'hosts: files dns\n')
  await writeFile(join(path, 'questions'), '')
  const started: ChildProcess[] = []
  const begin = async (words: readonly string[]): Promise<ChildProcess> => {
    const child = await startServer(words)
    started.push(child)
    return child
  }
  const close = async (): Promise<void> => {
    for (const each of started) each.kill('SIGKILL')
    await remove()
  }
  try {
    return await opened()
  } catch (error) {
    await close()
    throw error
  }

  async function opened(): Promise<World> {
    const host = await begin(['unshare', '--net', '--mount', '--propagation', 'private', ...STAY])
    const world = await begin(['unshare', '--net', ...STAY])
    // Entering mounts leads to `/`, and a directory that nsenter opened before (--wd) has no path inside: no plan would be cached.
    const enter = `exec nsenter --target ${host.pid} --net --mount -- sh -c 'cd "$0" && exec "$@"' "$PWD" "$@"`
    const through = ['sh', '-c', enter, 'sh']
    const onHost = (command: string) => execa('sh', [...through.slice(1), 'sh', '-ec', command])
    const inWorld = ['nsenter', '--target', `${world.pid}`, '--net', '--']
    await onHost(LINKS(world.pid ?? 0).join('\n'))
    await execa('nsenter', [...inWorld.slice(1), 'sh', '-ec', WORLD_LINKS.join('\n')])
    for (const file of ['resolv.conf', 'hosts', 'nsswitch.conf'])
      await onHost(`mount --bind ${path}/${file} /etc/${file}`)
    const nameServer = [process.execPath, join(PROGRAMS, 'name-server.mjs'), '127.0.0.1']
    await begin([...through, ...nameServer, join(path, 'questions'), JSON.stringify(zone)])
    await begin([...inWorld, process.execPath, join(PROGRAMS, 'servers.mjs'), files])
    if (hostServes) await begin([...through, process.execPath, join(PROGRAMS, 'servers.mjs'), files])
    const namespace = namespaceOf(`${host.pid}`)
    const processes: World['processes'] = (file, text) =>
      readdirSync('/proc')
        .filter((pid) => readOr(`/proc/${pid}/${file}`).includes(text) && namespaceOf(pid) === namespace)
        .map(Number)
    const helpers = () => processes('comm', 'net\n').filter((pid) => commOf(pid) === 'net')
    return {
      through,
      inWorld,
      files,
      processes,
      questions: async () => (await readFile(join(path, 'questions'), 'utf8')).split('\n').filter(Boolean),
      helpers,
      helper: () => until('a helper', () => helpers()[0]),
      close,
    }
  }
}
