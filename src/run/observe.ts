/**
 * Observes the machine before a run is planned: programs, engines, cgroups, and the paths that the policy names.
 * Edge: files, processes (by the rooms it asks), the caller's environment.
 */
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { backendNamed } from '../backends/index.ts'
import { probeEngine } from '../backends/namespace/probe-engine.ts'
import { processQuestions } from '../backends/namespace/probe-host.ts'
import { type Enter, enterByShell } from '../cgroup/enter.ts'
import type { Sights } from '../cgroup/fact.ts'
import { removeDeadTrials } from '../cgroup/group.ts'
import { heldByVersionOne, isLasting, observeCgroup } from '../cgroup/ladder.ts'
import { SandboxError } from '../error.ts'
import { recallOrFind } from '../host/boot-cache.ts'
import type { CgroupFact, PathFact, Probe } from '../host/facts.ts'
import { type FoundSockets, findSockets } from '../host/find-sockets.ts'
import { secretDirectory } from '../host/own-directory.ts'
import { identitiesOf, linkText, observePaths, observeRounds } from '../host/paths.ts'
import { type MachineFacts, observeHost } from '../host/probe.ts'
import { textOf } from '../os/look.ts'
import { checkNativePrograms, NATIVE_PROGRAMS, nativeDirectory, packageVersion } from '../os/native-programs.ts'
import { followUpPaths, pathsNamedBy } from '../plan/paths-to-inspect.ts'
import type { Request } from '../plan/request.ts'
import type { Policy } from '../policy/policy.ts'
import type { BackendName } from '../policy/values.ts'
import type { Environment } from './caller.ts'
import { newRunId } from './run-id.ts'

export interface MachineQuestion {
  /** Backends whose own facts are observed in addition. */
  readonly also?: readonly BackendName[]
  readonly policy: Pick<Policy, 'cgroupParent'> & {
    readonly engine: Policy['engine'] | 'all'
    readonly network?: Policy['network']
  }
  /** See host/probe.ts. */
  readonly believe?: boolean
  readonly env: Environment
  readonly notBelow: readonly string[]
}

/** The abilities of this machine, from memory for the same boot, user and set of programs. */
export async function observeMachine({
  also = [],
  policy,
  env,
  notBelow,
  believe = false,
}: MachineQuestion): Promise<MachineFacts> {
  const directory = nativeDirectory()
  const seen = probePrograms(directory)
  const questions = processQuestions(directory)
  const uid = process.getuid?.() ?? -1
  // Remembered for this boot, and believed: it must lie where no zone can be.
  const cache = secretDirectory(env, uid)
  // An untrusted program is never started, not even to answer a question.
  const enter = seen.probe.ok ? questions.enter : enterByShell
  return observeHost({
    wantsEngines: true,
    observers: also.flatMap((name) => backendNamed(name).observe?.observe ?? []),
    engine: policy.engine,
    env,
    notBelow,
    believe,
    version: packageVersion(),
    cache,
    nativePrograms: () => seen,
    probeEngine: (engine, bwrap) =>
      probeEngine({ engine, bwrap, nativeDirectory: directory, uid, arch: machineArch(), runId: newRunId() }),
    wantsNetwork: policy.engine === 'all' || policy.network?.mode === 'restricted',
    probeNetwork: (network, engine, bwrap) =>
      probeEngine({ engine, bwrap, nativeDirectory: directory, uid, arch: machineArch(), runId: newRunId(), network }),
    landlockAbi: questions.landlockAbi,
    cgroup: () => findCgroup({ uid, enter, cache, cgroupParent: policy.cgroupParent }),
  })
}

function machineArch(): 'x64' | 'arm64' {
  return process.arch === 'arm64' ? 'arm64' : 'x64'
}

function probePrograms(directory: string): { readonly probe: Probe; readonly stamp: string } {
  try {
    checkNativePrograms(directory, process.arch)
    const seen = NATIVE_PROGRAMS.map((name) => statSync(join(directory, name)))
    return {
      probe: { ok: true, detail: join(directory, 'llm-do') },
      stamp: seen.map(({ ino, mtimeMs, size }) => `${ino}:${mtimeMs}:${size}`).join(' '),
    }
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error
    return {
      probe: { ok: false, step: 'native programs', errno: '', message: error.message, fix: error.hint },
      stamp: '',
    }
  }
}

/** Removes the cgroups of processes that were killed while they probed the place where runs have theirs. */
export async function pruneTrials(env: Environment): Promise<void> {
  const uid = process.getuid?.() ?? -1
  const question = {
    uid,
    enter: enterByShell,
    cache: secretDirectory(env, uid),
    cgroupParent: undefined,
  }
  const { parent } = await findCgroup(question)
  if (parent !== undefined) removeDeadTrials(parent)
}

interface CgroupQuestion {
  readonly uid: number
  readonly enter: Enter
  readonly cache: string | undefined
  readonly cgroupParent: string | undefined
}

const NO_CGROUP: CgroupFact = { rung: 'none', controllers: [], lacking: 'this is not Linux', fix: '' }

/**
 * The ladder takes tens of milliseconds to climb, so its answer is remembered for the boot, user and group: one that lacks something as
 * long as all looks as it did then (isLasting, looksTheSame). A parent that was named is looked at every time.
 */
async function findCgroup({ uid, enter, cache, cgroupParent }: CgroupQuestion): Promise<CgroupFact> {
  if (process.platform !== 'linux') return NO_CGROUP
  if (cgroupParent !== undefined) return observeCgroup({ uid, enter, observe: identitiesOf, cgroupParent })
  const cacheInputs = cache === undefined ? undefined : { directory: cache, uid, key: cgroupKey() }
  return recallOrFind<CgroupFact>(cacheInputs, {
    find: () => observeCgroup({ uid, enter, observe: identitiesOf }),
    isLasting,
    holds: ({ parent, seen = {} }) => (parent === undefined || existsSync(parent)) && looksTheSame(seen),
  })
}

function looksTheSame(seen: Sights): boolean {
  const now = identitiesOf(Object.keys(seen))
  return Object.entries(seen).every(([path, identity]) => now[path] === identity)
}

/** The same path in another mount namespace may be read-only, or another tree. */
function cgroupKey(): string {
  const [boot, own] = ['/proc/sys/kernel/random/boot_id', '/proc/self/cgroup'].map(textOf)
  const rooms = ['user', 'mnt', 'cgroup'].map((name) => linkText(`/proc/self/ns/${name}`))
  return ['cgroup', packageVersion(), boot, own, ...rooms, ...heldByVersionOne()].join('\n')
}

/** Every path that the policy names, with what the answers lead to. */
export function observePolicyPaths(policy: Policy, request: Request): Record<string, PathFact> {
  return observeRounds(pathsNamedBy(policy, request), (seen) => followUpPaths(policy, request, seen))
}

/** Zone source -> sockets and FIFOs in it. */
export function openSocketsIn(zones: readonly { readonly source: string }[]): Record<string, FoundSockets> {
  return Object.fromEntries(zones.map(({ source }) => [source, findSockets(source)]))
}

/** Absolute paths that exist here; for hints only. */
export function existing(paths: readonly string[]): readonly string[] {
  const facts = observePaths(paths)
  return paths.filter((path) => facts[path]?.kind !== 'missing')
}
