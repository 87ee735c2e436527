/**
 * The security contract as data: for each sentence of it that one machine can test alone, the attempt in a real
 * sandbox and the expected observation. Pure; self-test.ts does the attempts. docs/internals/threat-model.md has the table.
 */

import type { SandboxInput } from '../policy/keys/index.ts'
import type { EngineName } from '../policy/values.ts'
import type { Result } from '../report/result.ts'

export const ROOMS = ['files', 'processes', 'network', 'syscalls', 'resources', 'results', 'fallbacks'] as const
export type Room = (typeof ROOMS)[number]

/** The files and processes on the host that a row needs. Paths are absolute, canonical and the same inside. */
export interface TestSite {
  readonly uid: number
  /** The caller's mask of file modes. */
  readonly umask: number
  readonly engine: EngineName
  readonly landlockAbi: number
  /** Holds everything below; its name occurs nowhere else on the machine. */
  readonly base: string
  /** Zone, read-only: `probe`, `notes` (NOTES), `broken` (an interpreter that is not there), `socket` (listened to by the host). */
  readonly shown: string
  /** Zone, writable: `.git/config` (NOTES) and `.git/hooks/`. */
  readonly writable: string
  /** No zone; holds `secret`. */
  readonly hidden: string
  readonly probe: string
  /** Port of a listener on the host's 127.0.0.1. */
  readonly port: number
  /** Name of an abstract socket that the host listens to, without the leading NUL. */
  readonly abstract: string
  /** A process of the host. */
  readonly pid: number
}

/** Content of every file that must not change. */
export const NOTES = 'host\n'

/** One run in one sandbox. */
export interface Attempt {
  readonly command: readonly string[]
  /** On top of the two zones, no network and the default profile. */
  readonly policy?: SandboxInput
  readonly stdin?: Uint8Array
  /** On top of the caller's environment. */
  readonly env?: Readonly<Record<string, string>>
}

export interface ObservedRun extends Pick<Result, 'stdout' | 'stderr' | 'exitCode' | 'signal' | 'durationMs'> {
  /** The sandbox was refused before anything started. */
  readonly refused?: { readonly code: string; readonly message: string }
  /** Of all bytes that the command wrote to stdout. */
  readonly stdoutSha256: string
  readonly truncated: number
  readonly reason: string
  readonly errorCode?: string
  readonly errorMessage?: string
  /** The mechanism that enforced the memory limit. */
  readonly memoryBy?: string
  /** The rung of the number of processors. */
  readonly cpusBy?: string
}

export interface ObservedFile {
  readonly mode: number
  readonly uid: number
  /** Content of a regular file; else the kind. */
  readonly content: string
}

/** The host after the attempts. */
export interface HostState {
  /** Relative path -> file, links not followed. */
  readonly shown: Readonly<Record<string, ObservedFile>>
  readonly writable: Readonly<Record<string, ObservedFile>>
  /** Command lines of live processes that were started from the site. */
  readonly processes: readonly string[]
  /** Connections that one of the host's listeners accepted. */
  readonly connections: number
  /** The runner's own namespaces: `ipc` -> `ipc:[4026531839]`. */
  readonly namespaces: Readonly<Record<string, string>>
}

export interface Observed {
  readonly runs: readonly ObservedRun[]
  readonly hostState: HostState
}

export type Verdict =
  | { readonly kind: 'holds' }
  | { readonly kind: 'broken'; readonly why: string }
  /** This machine cannot hold it; `why` names what is refused instead. */
  | { readonly kind: 'cannot'; readonly why: string }

export interface Row {
  /** Stable, unique: `files.host-absent`. */
  readonly id: `${Room}.${string}`
  readonly sentence: string
  readonly attempts: (site: TestSite) => readonly Attempt[]
  /** All at once instead of one after the other. */
  readonly together?: boolean
  /** Complaints; empty ones do not count. */
  readonly wrong: (observed: Observed, site: TestSite) => readonly string[] | Extract<Verdict, { kind: 'cannot' }>
}

export const roomOf = ({ id }: Pick<Row, 'id'>): Room => id.split('.')[0] as Room

/** A row holds when nothing is wrong. */
export function verdictOf(row: Row, observed: Observed, site: TestSite): Verdict {
  const wrong = row.wrong(observed, site)
  if ('kind' in wrong) return wrong
  const failures = wrong.filter((line) => line !== '')
  return failures.length === 0 ? { kind: 'holds' } : { kind: 'broken', why: failures.join('; ') }
}

/* ---- words for the rows ---- */

/** @param linux the first with that version of Landlock */
export const withoutLandlock = (needed: number, linux: string, { landlockAbi }: TestSite): string =>
  `needs Landlock ${needed} (Linux ${linux}), this kernel has ${landlockAbi || 'none'}`

/** A complaint when the claim is not true. */
export const unless = (claim: boolean, complaint: string): string => (claim ? '' : complaint)

export const probe =
  (...words: readonly string[]) =>
  (site: TestSite): readonly Attempt[] => [{ command: [site.probe, ...words] }]

/** A shell script; its words are $1, $2 and so on. */
export const shell = (script: string, ...words: readonly string[]): readonly string[] => [
  '/bin/sh',
  '-c',
  script,
  'sh',
  ...words,
]

/** The first run of a row, or another one. */
export function first({ runs }: Observed, index = 0): ObservedRun {
  return runs[index] ?? NO_RUN
}

/** The result that an attempt without a run must show. */
export const NO_RUN: ObservedRun = {
  stdout: '',
  stderr: '',
  stdoutSha256: '',
  truncated: 0,
  exitCode: null,
  signal: null,
  reason: 'setup',
  durationMs: 0,
}

export interface Line {
  readonly what: string
  readonly result: string
}

/** The probe's lines: what was tried and the last word of the answer. */
export function linesOf(run: ObservedRun): readonly Line[] {
  const lines = run.stdout.split('\n').filter((line) => line.includes(' '))
  return lines.map((line) => ({ what: line.split(' ')[0] ?? '', result: line.split(' ').at(-1) ?? '' }))
}

/** Complaints about a run that did not get as far as it must, and about answers that are not among the good ones. */
export function unlessResultIs(run: ObservedRun, good: readonly string[], count: number): readonly string[] {
  const lines = linesOf(run)
  const bad = lines.filter(({ result }) => !good.includes(result))
  return [
    unlessRan(run),
    unless(lines.length >= count, `${lines.length} answers instead of ${count}`),
    ...bad.map(({ what, result }) => `${what}: ${result}`),
  ]
}

/** A complaint about a sandbox that did not run the command to its end. */
export function unlessRan({ refused, exitCode, reason, errorCode, errorMessage }: ObservedRun): string {
  if (refused !== undefined) return `refused: ${refused.message}`
  const why = errorCode === undefined ? reason : `${errorCode}: ${errorMessage}`
  return unless(exitCode !== null && errorCode === undefined, `the run ended with ${why}`)
}

export function statusValue(text: string, name: string): string {
  return new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(text)?.[1] ?? ''
}
