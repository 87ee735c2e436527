/** Findings about cgroups on this host for this caller. Part of the facts, see host/facts.ts. */

/** The steps of the ladder, best first; docs/reference/limits.md says what each one is. */
export type CgroupRung = 'parent' | 'delegated' | 'systemd-user' | 'systemd-system' | 'direct' | 'accounting' | 'none'

export interface CgroupFact {
  readonly rung: CgroupRung
  /** Absolute directory below which runs get their own cgroup; absent on rung `none`. */
  readonly parent?: string
  /** Controllers enabled for children of `parent`. */
  readonly controllers: readonly string[]
  /** Why a better rung is not there, in words, with what would give it; empty when all limits are the kernel's. */
  readonly lacking: string
  /** The command or setting among it that would give the most; empty when nothing lacks or nothing is known to help. */
  readonly fix: string
  /** Where it lacks something: what would look different if it did not. Absent otherwise. */
  readonly seen?: Sights
}

/** Path -> identity before anything was tried there; undefined = it could not be read, or the result may have been chance. */
export type Sights = Readonly<Record<string, string | undefined>>
