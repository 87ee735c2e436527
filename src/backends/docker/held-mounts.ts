/**
 * The inodes of a container's zones on the host, inspected once and held open until its end.
 * Edge: files.
 *
 * The daemon resolves every path again, as root. So each inode is opened here from the zone's root downwards without following a
 * link, and our init compares the container's mounts with them before the command starts (native/tools/container-mounts.c). An inode that is
 * held open is not reused for another file.
 */
import { closeSync, constants, fstatSync, openSync } from 'node:fs'
import { type Plan, type PlannedZone, SandboxError } from '../run-kit.ts'
import type { DockerInputs, DockerRunInputs } from './command-environment.ts'
import { planCovers } from './guard.ts'
import { coversThere, linkInTheWay, withGit } from './guard-in-node.ts'
import type { Cover } from './mounts.ts'

/** O_PATH of open(2): the same on every architecture that Linux shares with us; node has no name for it. */
const O_PATH = 0o10000000
const LOOK = O_PATH | constants.O_NOFOLLOW

export interface HeldCovers {
  /** With the inode of each. */
  readonly covers: readonly Cover[]
  readonly close: () => void
}

/** Calls back with the run's zones held open. Outside Linux that is impossible, and the client's answer is trusted. */
export async function withMounts<
  T extends { readonly plan: Plan; readonly run: DockerRunInputs; readonly signal?: AbortSignal | undefined },
  R,
>(input: T, then: (held: T) => Promise<R>): Promise<R> {
  const docker = input.run.docker
  const { covers, close } = await observeMounts(input, docker)
  try {
    return await then({ ...input, run: { ...input.run, docker: { ...docker, covers } } })
  } finally {
    close()
  }
}

async function observeMounts(
  { plan, signal }: { readonly plan: Plan; readonly signal?: AbortSignal | undefined },
  { platform, remote, guard }: DockerInputs,
): Promise<HeldCovers> {
  if (platform !== 'linux') return { covers: plan.zones.map(withGit).flatMap(coversThere), close: () => undefined }
  if (remote) return { covers: [], close: () => undefined }
  return holdCovers({ zones: plan.zones, covers: await planCovers(plan, { guard, signal }) })
}

export interface InitQuestion {
  readonly docker: DockerInputs
  /** Our init runs the command and can report to the runner. */
  readonly isThere: boolean
}

/**
 * Without our init the mounts are not compared before the command begins.
 * @throws SandboxError SETUP_FAILED for zones that would have to be taken on trust
 */
export function requireInit({ zones }: Plan, { docker, isThere }: InitQuestion): void {
  if (isThere || docker.platform !== 'linux') return
  const trusted = docker.remote ? zones.filter(isProtected) : zones
  const [zone] = trusted
  if (zone === undefined) return
  throw new SandboxError(
    'SETUP_FAILED',
    `${docker.program}: zone ${zone.name} (${zone.source}) is refused: the daemon cannot show container-init in a container, and nothing else compares the mounts with what was planned`,
    {
      hint: docker.remote
        ? "a daemon on another machine gets read-only zones, or --protect-not '*'; or --backend namespace"
        : 'install llm-do where the daemon sees it, below a directory that containers may read; or --backend namespace',
    },
  )
}

const isProtected = ({ mode, protect, git }: PlannedZone): boolean =>
  mode === 'rw' && (protect.length > 0 || git !== undefined)

/** For a container that was made a moment ago. */
export function mountsDiffer({ program }: DockerInputs): SandboxError {
  return new SandboxError(
    'ZONE_INVALID',
    `${program}: a zone of the container is not what was planned: it was exchanged meanwhile`,
    {
      hint: 'run again; if it stays so, look at which program exchanges it',
    },
  )
}

export interface CoverInputs {
  readonly zones: readonly PlannedZone[]
  /** Parents first. */
  readonly covers: readonly Cover[]
}

/**
 * Linux only: other systems can resolve paths only from the root, not from a directory.
 * @throws SandboxError ZONE_INVALID when a zone is another one than was planned, or a cover is a link or gone
 */
export function holdCovers({ zones, covers }: CoverInputs): HeldCovers {
  const held: number[] = []
  const close = (): void => {
    for (const fd of held.splice(0)) closeSync(fd)
  }
  try {
    const seen = zones.flatMap((zone) => {
      const root = openZone(zone)
      held.push(root)
      const own = zone.mode === 'rw' ? covers.filter((cover) => cover.zone === zone.source) : []
      return own.map((cover) => {
        const fd = openBelow(root, cover)
        held.push(fd)
        return { ...cover, inode: inodeOf(fd) }
      })
    })
    // A source may be mounted at two targets.
    return { covers: [...new Map(seen.map((cover) => [`${cover.zone}\0${cover.path}`, cover])).values()], close }
  } catch (error) {
    close()
    throw error
  }
}

function inodeOf(fd: number): NonNullable<Cover['inode']> {
  const { dev, ino } = fstatSync(fd, { bigint: true })
  return { dev: String(dev), ino: String(ino) }
}

function openZone(zone: PlannedZone): number {
  const fd = openPath(zone.source, zone.source)
  const { dev, ino } = inodeOf(fd)
  if (dev === String(zone.dev) && ino === String(zone.ino)) return fd
  closeSync(fd)
  throw changed(zone.source)
}

function openBelow(root: number, { zone, path }: Cover): number {
  const words = path.split('/')
  let at = root
  for (const word of words) {
    const shownPath = `${zone}/${path}`
    const next = openEntry(at, word, shownPath)
    if (at !== root) closeSync(at)
    if (fstatSync(next).isSymbolicLink()) {
      closeSync(next)
      throw linkInTheWay(shownPath)
    }
    at = next
  }
  return at
}

/** The guard has planned the cover, so the command could come to it; what this process cannot hold is not mounted. */
function openEntry(directory: number, name: string, shownPath: string): number {
  try {
    return openSync(`/proc/self/fd/${directory}/${name}`, LOOK)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EACCES') throw closed(shownPath, error)
    throw changed(shownPath, error)
  }
}

function openPath(path: string, shownPath: string): number {
  try {
    return openSync(path, LOOK)
  } catch (error) {
    throw changed(shownPath, error)
  }
}

function changed(path: string, cause?: unknown): SandboxError {
  const { code } = (cause ?? {}) as NodeJS.ErrnoException
  const how = code === undefined ? 'it is another one' : code
  return new SandboxError('ZONE_INVALID', `${path} has changed since the run was planned (${how})`, {
    hint: 'run again; if it stays so, look at which program exchanges it',
    cause,
  })
}

function closed(path: string, cause: unknown): SandboxError {
  return new SandboxError('ZONE_INVALID', `${path} is protected, but cannot be looked at (EACCES)`, {
    hint: 'chmod u+rwx the directories on the way, or make the zone ro',
    cause,
  })
}
