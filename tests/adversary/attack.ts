/**
 * The table of attacks as data: what is tried in a sandbox, and what of the host must not have changed afterwards.
 * daily.ts tries each row and once without the wall, table.user.deep.system.test.ts every cell of the matrix; soak.ts takes steps from it by chance.
 */
import type { User } from '../support/users.ts'
import type { Ran, Stage, World } from './world.ts'

export const FILTERS = ['default', 'strict', 'nested', 'off', 'file'] as const
/** `file` is a filter of the caller's own that lets namespaces and mounts through. */
export type Filter = (typeof FILTERS)[number]

/** One combination of what a caller may choose. */
export interface Cell {
  readonly backend: 'unshare' | 'bwrap' | 'docker' | 'podman'
  readonly filter: Filter
  readonly user: User
}

export interface Observed {
  readonly world: World
  /** Output of the attack. */
  readonly printed: string
  /** Every run of it, in order. */
  readonly runs: readonly Ran[]
}

/** The damage, in words; empty when the host is unchanged. */
export type Harm = string | undefined

export interface Attack {
  /** Stable, unique: `git.commondir`. */
  readonly id: string
  /** The finding of the review or the class of known holes. */
  readonly of: string
  readonly sentence: string
  /** Where the row claims something; everywhere by default. What a policy gives away on purpose is left out. */
  readonly on?: (cell: Cell) => boolean
  /** Too long for `make test`: table.user.deep.system.test.ts tries it. */
  readonly isDeep?: boolean
  /** Files and processes on the host before the attack. */
  readonly prepare?: (world: World) => Promise<void>
  /** A shell script for the inside; rows with nothing but this share one sandbox, and the soak takes its steps from all of them. */
  readonly script?: (world: World) => string
  /** Extra runs: a script in a sandbox with other options, or several, or a racer at the same time. */
  readonly attempt?: (stage: Stage) => Promise<void>
  readonly harmed: (seen: Observed) => Harm | Promise<Harm>
  /** Without the wall: the same on the host, or another way, or why there is none. */
  readonly control: 'bare' | ((stage: Stage) => Promise<void>) | { readonly none: string }
  /** Only where the control can be shown: root alone may do some of it on the host. */
  readonly controlAs?: User
}

export const isNamespace = ({ backend }: Cell): boolean => backend === 'unshare' || backend === 'bwrap'
