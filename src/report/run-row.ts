/**
 * A line of an audit log, or of the results of a batch -> what the page of `llm-do report` shows of the run. Pure.
 * The commands in it may be hostile: every text is made visible here, and the page never reads one as markup (report-page.ts).
 */
import { REASONS } from '../contract.ts'
import { isMapping, type Mapping, mappingIn } from '../text/json.ts'
import { shellWord } from '../text/shell-word.ts'
import { neutralise } from './text.ts'

/** How a run is counted and coloured. */
export type Kind = 'succeeded' | 'failed' | 'limit' | 'refused'

/** Short names, for a page of many runs. */
export interface RunRow {
  /** Command line, or the ID in a batch. */
  readonly c: string
  readonly k: Kind
  readonly r: string
  /** Milliseconds since 1970; a batch has no times. */
  readonly t?: number
  /** Milliseconds that it took. */
  readonly d?: number
  readonly exit?: number
  readonly signal?: string
  readonly memory?: number
  readonly cpuMs?: number
  readonly worker?: string
  readonly profile?: string
  readonly backend?: string
  readonly error?: string
  /** The source of the refusal. */
  readonly by?: string
  readonly denials?: readonly RowDenial[]
}

export interface RowDenial {
  readonly layer: string
  /** `write /etc/x`. */
  readonly what: string
  readonly count: number
  readonly fix: string
}

/** Longer command lines are cut. */
const TEXT_MAX = 2_000
/** A hostile command can cause any number of them. */
const DENIALS_MAX = 50
const LIMITS: ReadonlySet<string> = new Set(['timeout', 'memory', 'cpu-time', 'disk', 'pids'])
const KNOWN: ReadonlySet<string> = new Set(REASONS)

function shown(value: unknown): string | undefined {
  if (typeof value !== 'string' || value === '') return undefined
  const text = neutralise(value.slice(0, TEXT_MAX))
  return value.length > TEXT_MAX ? `${text}...` : text
}

const amount = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) ? Math.round(value * 1000) / 1000 : undefined

function commandOf({ argv, id }: Mapping): string | undefined {
  if (!Array.isArray(argv)) return shown(id)
  return shown(argv.map((word) => shellWord(String(word).slice(0, TEXT_MAX))).join(' '))
}

function denialOf(value: unknown): readonly RowDenial[] {
  if (!isMapping(value)) return []
  const what = [shown(value['operation']), shown(value['target'])].filter((part) => part !== undefined).join(' ')
  return [
    { layer: shown(value['layer']) ?? '', what, count: amount(value['count']) ?? 1, fix: shown(value['fix']) ?? '' },
  ]
}

function kindOf(reason: string, fields: Mapping): Kind {
  if (LIMITS.has(reason)) return 'limit'
  if (reason === 'signal') return 'failed'
  if (reason !== 'exit') return 'refused'
  return fields['exitCode'] === 0 ? 'succeeded' : 'failed'
}

/** A task of a batch that was refused has an error and no reason. */
function reasonOf({ reason, decision, error }: Mapping): string | undefined {
  if (typeof decision === 'string' && decision !== 'run') return shown(decision)
  if (typeof reason === 'string' && KNOWN.has(reason)) return reason
  return reason === undefined && isMapping(error) ? 'refused' : undefined
}

const errorOf = (error: unknown) => (isMapping(error) ? shown(error['message'] ?? error['cause']) : shown(error))

function timeOf(time: unknown): number | undefined {
  const at = typeof time === 'string' ? Date.parse(time) : Number.NaN
  return Number.isFinite(at) ? at : undefined
}

/** @returns undefined for a line that describes no run */
export function runRow(line: string): RunRow | undefined {
  const fields = mappingIn(line)
  const [command, reason] = fields === undefined ? [] : [commandOf(fields), reasonOf(fields)]
  if (fields === undefined || command === undefined || reason === undefined) return undefined
  const usage = isMapping(fields['usage']) ? fields['usage'] : {}
  const denials = Array.isArray(fields['denials']) ? fields['denials'].slice(0, DENIALS_MAX).flatMap(denialOf) : []
  const row = {
    c: command,
    k: kindOf(reason, fields),
    r: reason,
    t: timeOf(fields['time']),
    d: amount(fields['durationMs']),
    exit: amount(fields['exitCode']),
    signal: shown(fields['signal']),
    memory: amount(usage['peakMemory']),
    cpuMs: amount(usage['cpuMs']),
    worker: shown(fields['worker']),
    profile: shown(fields['profile']),
    backend: shown(fields['backend']),
    error: errorOf(fields['error']),
    by: fields['decision'] === 'run' ? undefined : shown(fields['decidedBy']),
    denials: denials.length === 0 ? undefined : denials,
  }
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== undefined)) as unknown as RunRow
}
