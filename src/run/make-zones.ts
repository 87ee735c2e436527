/**
 * Directories of zones with `create`, and that of layers, made between two plans.
 * Edge: files, processes.
 */
import { isLayersDirectoryNew } from '../cow/state-directory.ts'
import { SandboxError } from '../error.ts'
import { makeDirectories } from '../os/make-directories.ts'
import { checkNativePrograms, hostCall, nativeDirectory } from '../os/native-programs.ts'
import { runProgram } from '../os/run-program.ts'
import type { PlannedZone } from '../plan/plan.ts'
import { privateSteps } from '../plan/private-steps.ts'
import { isWithin } from '../plan/well-known-paths.ts'
import type { Prepared } from './plan-run.ts'

/**
 * Plans, makes the directories of zones with `create`, and plans again, since the first plan is of paths that are now others.
 * @throws SandboxError ZONE_INVALID where one cannot be made, or is not the one that was made when it is looked at again
 */
export async function prepareZones(prepare: () => Promise<Prepared>): Promise<Prepared> {
  const first = await prepare()
  const { env = process.env } = first.options
  const wanted = first.plan.zones.filter(({ create }) => create)
  if (wanted.length === 0)
    return isLayersDirectoryNew({ env, uid: first.facts.uid, plan: first.plan }) ? await prepare() : first
  const made = new Map<string, string>()
  for (const zone of wanted) made.set(zone.target, await makeSource(zone, first))
  const prepared = await prepare()
  for (const zone of prepared.plan.zones) checkMade(zone, made.get(zone.target))
  return prepared
}

const makeSource = async ({ source, target }: PlannedZone, prepared: Prepared): Promise<string> =>
  (await madeHome({ source, target }, prepared)) ??
  ((await madePrivately(source, prepared)) ? UNKNOWN : await makeZoneDirectory(source))

async function madeHome(
  { source, target }: Pick<PlannedZone, 'source' | 'target'>,
  { policy, request, facts }: Prepared,
): Promise<string | undefined> {
  if (!policy.zones.some((zone) => zone.isHome === true && zone.target === target)) return undefined
  const { makeHome } = await import('./homes.ts')
  return makeHome(source, { uid: facts.uid, project: request.homeProject ?? request.cwd })
}

/** Our directories for commands are closed to all others from the start. The next plan checks whether they still are. */
async function madePrivately(source: string, { request, facts }: Prepared): Promise<boolean> {
  const root = request.privatePlaces?.root
  if (root === undefined || !isWithin(source, root)) return false
  const { makePrivateSteps } = await import('../host/private-directory.ts')
  try {
    makePrivateSteps(privateSteps(root, source), facts.uid)
  } catch (cause) {
    throw notMade(source, (cause as Error).message, cause)
  }
  return true
}

function checkMade({ source, dev, ino }: PlannedZone, made: string | undefined): void {
  if (made === undefined || made === UNKNOWN || made === `${dev} ${ino}`) return
  throw new SandboxError('ZONE_INVALID', `zone source ${source} was replaced by something else while it was made`, {
    hint: 'see what else is at work there, and try again',
  })
}

const UNKNOWN = ''
/** Milliseconds; a directory on a slow network share. */
const MAKING_MS = 30_000

/**
 * By the native program, which follows no link that was put in the way since the path was looked at: root may have to make a
 * directory in that of another user. Only Linux has it.
 * @returns device and inode of the directory
 */
async function makeZoneDirectory(source: string): Promise<string> {
  if (process.platform !== 'linux') return makeByPath(source)
  const directory = nativeDirectory()
  checkNativePrograms(directory, process.arch)
  const call = hostCall('runs', ['make', source], directory)
  const { ok, why, stdout } = await runProgram({ ...call, patienceMs: MAKING_MS })
  if (!ok || !/^\d+ \d+\n$/.test(stdout)) throw notMade(source, why || 'no answer')
  return stdout.trim()
}

function makeByPath(source: string): string {
  try {
    makeDirectories(source)
    return UNKNOWN
  } catch (cause) {
    throw notMade(source, (cause as NodeJS.ErrnoException).code ?? (cause as Error).message, cause)
  }
}

function notMade(source: string, why: string, cause?: unknown): SandboxError {
  return new SandboxError('ZONE_INVALID', `zone source ${source} cannot be made: ${why}`, {
    hint: /read-only file system|EROFS/i.test(why)
      ? 'HOME=DIRECTORY (writable) for what lies below the home; else a source on a writable file system'
      : `mkdir -p ${source}`,
    cause,
  })
}
