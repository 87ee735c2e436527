/**
 * The place where the contract is tried: two zones, a directory that is none, listeners of the host, and a look at it all afterwards.
 * Edge: files, sockets, /proc, processes (pid).
 */
import {
  chmod,
  copyFile,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  realpath,
  rm,
  writeFile,
} from 'node:fs/promises'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { SandboxError } from '../error.ts'
import { nativeDirectory } from '../os/native-programs.ts'
import { ownUmask } from '../os/umask.ts'
import type { EngineName } from '../policy/values.ts'
import { type HostState, NOTES, type ObservedFile, type TestSite } from './contract-types.ts'

export interface PreparedTestSite {
  readonly site: TestSite
  /** Looks at the host once the processes have had their time to go. */
  readonly observe: () => Promise<HostState>
  readonly remove: () => Promise<void>
}

export interface TestSiteInputs {
  readonly engine: EngineName
  readonly landlockAbi: number
}

/** From the end of a run until nothing of it may be left: INVARIANTS' half second, and more for a loaded machine. */
const LOOK_MS = 3_000
/** Milliseconds between the first two looks. */
const FIRST_PAUSE_MS = 25

/** @throws SandboxError HELPER_MISSING without the probe */
export async function prepareTestSite({ engine, landlockAbi }: TestSiteInputs): Promise<PreparedTestSite> {
  const base = await realpath(await mkdtemp(join(tmpdir(), 'llm-do-self-test-')))
  const [shown, writable, hidden] = ['shown', 'writable', 'hidden'].map((name) => join(base, name)) as [
    string,
    string,
    string,
  ]
  const listeners: Server[] = []
  const counter = { connections: 0 }
  const open = async (address: string | { readonly host: string; readonly port: number }): Promise<Server> => {
    const server = await listen(address, () => counter.connections++)
    listeners.push(server)
    return server
  }
  const remove = async (): Promise<void> => {
    for (const listener of listeners) listener.close()
    await rm(base, { recursive: true, force: true })
  }
  try {
    await fillTestSite({ shown, writable, hidden })
    const abstract = `llm-do-${basename(base)}`
    const local = await open({ host: '127.0.0.1', port: 0 })
    await open(`${shown}/socket`)
    await open(`\0${abstract}`)
    const { port } = local.address() as AddressInfo
    const site: TestSite = {
      uid: process.getuid?.() ?? -1,
      umask: ownUmask(),
      engine,
      landlockAbi,
      base,
      shown,
      writable,
      hidden,
      probe: join(shown, 'probe'),
      port,
      abstract,
      pid: process.pid,
    }
    return { site, observe: () => observeSite(site, counter), remove }
  } catch (error) {
    await remove()
    throw error
  }
}

async function fillTestSite({
  shown,
  writable,
  hidden,
}: Pick<TestSite, 'shown' | 'writable' | 'hidden'>): Promise<void> {
  await Promise.all([shown, join(writable, '.git', 'hooks'), hidden].map((path) => mkdir(path, { recursive: true })))
  const probe = join(nativeDirectory(), 'probe')
  await copyFile(probe, join(shown, 'probe')).catch((cause: NodeJS.ErrnoException) => {
    throw new SandboxError('HELPER_MISSING', `native program ${probe} cannot be copied (${cause.code})`, {
      hint: 'make native',
      cause,
    })
  })
  await chmod(join(shown, 'probe'), 0o755)
  await writeFile(join(shown, 'notes'), NOTES, { mode: 0o644 })
  await writeFile(join(shown, 'broken'), '#!/nonexistent/interpreter\n', { mode: 0o755 })
  await writeFile(join(writable, '.git', 'config'), NOTES, { mode: 0o644 })
  await writeFile(join(hidden, 'secret'), NOTES, { mode: 0o644 })
}

function listen(
  address: string | { readonly host: string; readonly port: number },
  count: () => void,
): Promise<Server> {
  const server = createServer((socket) => {
    count()
    socket.on('error', () => socket.destroy())
    socket.end()
  })
  server.unref()
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(address, () => resolve(server))
  })
}

async function observeSite(site: TestSite, { connections }: { connections: number }): Promise<HostState> {
  return {
    processes: await lastingProcesses(site.base),
    shown: await filesBelow(site.shown),
    writable: await filesBelow(site.writable),
    connections,
    namespaces: await ownNamespaces(),
  }
}

async function lastingProcesses(base: string): Promise<readonly string[]> {
  // Each look reads what all processes of the machine were started with, so it is taken less and less often.
  for (let left = LOOK_MS, pause = FIRST_PAUSE_MS; ; left -= pause, pause *= 2) {
    const found = await processesOf(base)
    if (found.length === 0 || left <= 0) return found
    await sleep(pause)
  }
}

async function processesOf(base: string): Promise<readonly string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')))
  return lines.filter((line) => line.includes(base)).map((line) => line.replaceAll('\0', ' ').trim())
}

async function filesBelow(directory: string, below = ''): Promise<Readonly<Record<string, ObservedFile>>> {
  const names = await readdir(join(directory, below))
  const found = await Promise.all(
    names.map(async (name): Promise<Record<string, ObservedFile>> => {
      const path = join(below, name)
      const status = await lstat(join(directory, path))
      const kind = status.isFile() ? 'file' : status.isDirectory() ? 'directory' : 'other'
      const content = kind === 'file' && status.size < 4096 ? await contentOf(join(directory, path)) : kind
      const inside = kind === 'directory' ? await filesBelow(directory, path) : {}
      return { [path]: { mode: status.mode & 0o7777, uid: status.uid, content }, ...inside }
    }),
  )
  return Object.assign({}, ...found) as Record<string, ObservedFile>
}

/** A file that the attack made unreadable is only of interest by its name. */
const contentOf = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => 'unreadable')

async function ownNamespaces(): Promise<Readonly<Record<string, string>>> {
  const names = await readdir('/proc/self/ns')
  const links = await Promise.all(names.map(async (name) => [name, await readlink(`/proc/self/ns/${name}`)] as const))
  return Object.fromEntries(links)
}
