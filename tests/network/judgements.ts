/** The table of judgements.yaml, and hosts as rules know them. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { parseRange } from '../../src/network/address.ts'
import type { HostPattern } from '../../src/network/host-rule.ts'

export interface Rules {
  readonly allow: readonly string[]
  readonly deny: readonly string[]
}
export interface Question {
  readonly host: string
  readonly port: number
}
type Judgement = Rules & Question & { readonly allowed: boolean; readonly by?: string }

export const JUDGEMENTS = parse(
  readFileSync(join(import.meta.dirname, 'judgements.yaml'), 'utf8'),
) as readonly Judgement[]

export function patternOf(host: string): HostPattern {
  const range = parseRange(host)
  return range === undefined ? { kind: 'name', name: host } : { kind: 'range', range }
}
