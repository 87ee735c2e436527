/** Reports as text for people: one screen, aligned, a fix under what needs one. Pure. */
import type { Part, PartState } from '../backends/backend.ts'
import { isSandbox } from '../policy/values.ts'
import type { DoctorReport, Trial } from './checks.ts'
import type { Verdict } from './contract-types.ts'
import type { BackendReport } from './describe.ts'
import type { RowResult } from './self-test.ts'

const MARK: Readonly<Record<PartState, string>> = { ok: 'ok', limited: '--', missing: 'NO' }
const NAME_WIDTH = 16

const row = (mark: string, name: string, text: string): string => `${mark.padEnd(3)} ${name.padEnd(NAME_WIDTH)} ${text}`
const below = (text: string): string => `${' '.repeat(NAME_WIDTH + 5)}${text}`
/** Names and messages of programs may hold what moves a cursor. */
const plain = (text: string): string => text.replace(/[\p{Cc}\p{Cf}]/gu, ' ')

export function reportText({ trial, parts, backends }: DoctorReport): string {
  return `${[...parts.flatMap(partLines), '', ...backends.flatMap(backendLines), '', ...trialLines(trial)].map(plain).join('\n')}\n`
}

function partLines({ state, name, detail, fix }: Part): readonly string[] {
  return [row(MARK[state], name, detail), ...(fix === '' ? [] : [below(`fix: ${fix}`)])]
}

function backendLines({ name, usable, why, fix, holds, lacks }: BackendReport): readonly string[] {
  if (!usable) return [row('NO', name, why), ...(fix === '' ? [] : [below(`fix: ${fix}`)])]
  if (!isSandbox(name)) return [row('--', name, 'no walls; only with LLM_DO_ALLOW_UNSANDBOXED=1')]
  const limits = (['memory-limit', 'pids-limit', 'cpus-limit', 'io-limit'] as const).map(
    (need) => `${need} ${holds[need] ?? 'none'}`,
  )
  const missing = lacks.map(({ need }) => need).filter((need) => !(need === 'wasi-command' || need.endsWith('-limit')))
  return [row('ok', name, limits.join(', ')), ...(missing.length === 0 ? [] : [below(`without ${missing.join(', ')}`)])]
}

function trialLines(trial: Trial): readonly string[] {
  if (!trial.ok)
    return [row('NO', 'default profile', trial.message), ...(trial.hint === '' ? [] : [below(`fix: ${trial.hint}`)])]
  const by = trial.engine === undefined ? trial.backend : `${trial.backend} (${trial.engine})`
  const run =
    trial.setupMs === null ? '' : `, ready in ${trial.setupMs.toFixed(1)} ms, seccomp ${trial.filtered ? 'on' : 'off'}`
  return [row('ok', 'default profile', `runs on ${by}${run}`)]
}

const WORDS: Readonly<Record<Verdict['kind'], string>> = { holds: 'pass', broken: 'FAIL', cannot: 'cannot' }

/** One line a row of the contract. */
export function rowText({ id, engine, sentence, verdict }: RowResult): string {
  const why = verdict.kind === 'holds' ? '' : `: ${verdict.why}`
  return plain(`${WORDS[verdict.kind].padEnd(6)} ${engine.padEnd(7)} ${id.padEnd(32)} ${sentence}${why}`)
}

export function summaryText(results: readonly RowResult[]): string {
  const count = (kind: Verdict['kind']): number => results.filter(({ verdict }) => verdict.kind === kind).length
  return `${count('holds')} passed, ${count('broken')} failed, ${count('cannot')} cannot be held here`
}
