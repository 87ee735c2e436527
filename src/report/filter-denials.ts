/**
 * The refusals of the system call filter. It ends a process for 32-bit calls only; every other refusal is an error that the program sees, and
 * no observer does. So the output of programs tells of it, where the profile refuses the call that they mean. Pure.
 */
import type { Plan } from '../plan/plan.ts'
import { PROFILES, type ProfileName, type SetName } from '../seccomp/rules.ts'
import { refused } from './denials.ts'
import type { Denial, Reason } from './result.ts'

/** Only 32-bit calls end in SIGSYS (docs/reference/seccomp.md), and no filter lets them through for root. */
export function filterDenials(reason: Reason, { seccomp, identity }: Plan): readonly Denial[] {
  if (reason !== 'seccomp') return []
  const fix = identity === 'fresh' || seccomp.profile === 'off' ? '' : '--seccomp off'
  return [
    refused({
      layer: 'seccomp',
      operation: 'syscall',
      target: `a system call outside ${seccomp.profile}`,
      fix,
      key: fix === '' ? '' : 'seccomp',
    }),
  ]
}

interface Saying {
  readonly set: SetName
  readonly says: RegExp
  readonly target: string
  /** The narrowest profile without the set. */
  readonly profile: ProfileName
}

const SAYINGS: readonly Saying[] = [
  {
    set: 'namespaces',
    says: /\bunshare\b.*operation not permitted|\b(?:creat(?:e|ing)|to) new namespace|No usable sandbox|non-privileged user namespaces/i,
    target: 'new namespaces (unshare, clone)',
    profile: 'nested',
  },
  { set: 'debugging', says: /\bptrace\b.*operation not permitted/i, target: 'ptrace', profile: 'default' },
]

/** @param text the end of stderr. A lie in it can do no more than name one of these. */
export function saidFilterDenials(text: string, { seccomp: { profile } }: Plan): readonly Denial[] {
  return SAYINGS.filter(({ set, says }) => refuses(profile, set) && says.test(text)).map(
    ({ target, profile: fix }) => ({
      ...refused({ layer: 'seccomp', operation: 'syscall', target, fix: `--seccomp ${fix}`, key: 'seccomp' }),
      evidence: 'stderr',
    }),
  )
}

/** Only its author knows the refusals of a custom filter. */
function refuses(profile: string, set: SetName): boolean {
  const sets: readonly SetName[] = Object.hasOwn(PROFILES, profile) ? PROFILES[profile as ProfileName].sets : []
  return sets.includes(set)
}
