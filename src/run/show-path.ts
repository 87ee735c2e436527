import { startOf } from '../os/look.ts'
import { type Mounts, resolveMounts } from '../plan/mounts.ts'
import { foundCommand, insideOf, installationsOf } from '../plan/toolchain.ts'
import type { Policy } from '../policy/policy.ts'
import type { Zone } from '../policy/values.ts'
import { type InvisiblePath, shellWord } from '../report/hints.ts'
import { observePolicyPaths } from './observe.ts'
import type { Prepared } from './plan-run.ts'

type Run = Pick<Prepared, 'policy' | 'request' | 'facts' | 'plan'>

/** Undefined for what is nothing the command could be shown: a system directory, a device, what is not there. */
export function invisiblePath(path: string, run: Run): InvisiblePath | undefined {
  const inside = insideOf(path, run.plan.zones)
  if (inside === undefined) return shownByZone(path, run)
  const isShown = insideOf(path, mountsOf({ ...run.policy, samePath: true }, run).zones) === path
  return { path, inside, ...(isShown ? { flags: SAME_PATH } : {}) }
}

export const SAME_PATH = '--same-path'

const FLAGS = [
  { flag: '--ro', zone: {} },
  { flag: '--socket', zone: { kind: 'socket', sockets: true } },
] as const

function shownByZone(path: string, run: Run): InvisiblePath | undefined {
  const found = FLAGS.find(({ zone }) => isAccepted([{ ...plainZone(path), ...zone }], run))
  return found === undefined ? undefined : { path, flags: `${found.flag} ${shellWord(path)}` }
}

const plainZone = (hostPath: string): Zone => ({
  name: `hint ${hostPath}`,
  mode: 'ro',
  hostPath,
  create: false,
  optional: false,
  sockets: false,
  origin: { layer: 'flag', source: '--ro', key: 'zones' },
})

/** Whether planning accepts a flag that shows it. */
export const isShowable = (path: string, run: Run): boolean => isAccepted([plainZone(path)], run)

function isAccepted(zones: readonly Zone[], run: Run): boolean {
  return mountsOf({ ...run.policy, zones: [...run.policy.zones, ...zones] }, run).problems.length === 0
}

function mountsOf(policy: Policy, { request, facts: { uid, platform } }: Run): Mounts {
  return resolveMounts({ policy, request, uid, platform, paths: observePolicyPaths(policy, request) })
}

/** The interpreter in the command's `#!` line, if the host has it and it or its target is not mounted. */
export function invisibleInterpreter(run: Run): InvisiblePath | undefined {
  const { policy, request, facts, plan } = run
  const script = foundCommand(request, facts.paths)
  const path = script === undefined ? undefined : interpreterOf(script)
  if (path === undefined) return undefined
  const paths = observePolicyPaths({ ...policy, zones: [plainZone(path)] }, request)
  if (paths[path]?.kind !== 'file') return undefined
  const inside = insideOf(path, plan.zones)
  const isElsewhere = inside !== undefined && inside !== path
  const directories = installationsOf(path, { request, paths, zones: plan.zones })
  const zones = [...policy.zones, ...directories.map(plainZone)]
  const { problems } = mountsOf({ ...policy, samePath: policy.samePath || isElsewhere, zones }, run)
  const flags = [...(isElsewhere ? [SAME_PATH] : []), ...directories.map((one) => `--ro ${shellWord(one)}`)].join(' ')
  return problems.length > 0 || flags === '' ? undefined : { path, flags }
}

/** As much as the kernel reads of a script (BINPRM_BUF_SIZE). */
const FIRST_BYTES = 256

export const interpreterOf = (script: string): string | undefined =>
  /^#![ \t]*(\/[^\s]*)/.exec(readStart(script, FIRST_BYTES))?.[1]

/** The first bytes of an ordinary file; empty where it is gone, closed to us, or something else. */
export const readStart = (path: string, most = 64 << 10): string => startOf(path, most) ?? ''
