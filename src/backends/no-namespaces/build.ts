/** A plan without namespaces as a launch file for the native chain: what Landlock opens of the host's own tree. Pure. */
import type { Plan, SystemEntry } from '../../plan/plan.ts'
import type { RunInputs } from '../backend.ts'
import type { NativeLaunch } from '../launch.ts'
import { firstLaunchOf, launchFile } from '../namespace/build.ts'

/** The host's files, in place of those that our own tree has. */
const OPENED_FILES = ['/etc/group', '/etc/hosts', '/etc/nsswitch.conf', '/etc/passwd']

export function launchFileOf(plan: Plan, run: RunInputs): Uint8Array {
  return launchFile(openedPlan(plan), { ...run, withoutNamespaces: true })
}

export function buildNoNamespaces(plan: Plan, run: RunInputs): NativeLaunch {
  return firstLaunchOf(plan, run, launchFileOf(plan, run))
}

/** Nothing can be made or mounted there: what is left of the tree is what the host has, by its own path. */
function openedPlan(plan: Plan): Plan {
  const opened = OPENED_FILES.map((target): SystemEntry => ({ op: 'file', target, content: '', mode: 0o644 }))
  return { ...plan, scratch: [], system: [...plan.system.filter(({ op }) => op === 'bind'), ...opened] }
}
