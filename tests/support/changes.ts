/**
 * Line differences of two texts, for golden files of variants: the golden of the default is reviewed whole, a variant only where it
 * differs from the default.
 */

import { PROTECTED_NAMES } from '../../src/policy/protected.ts'

const BUILT_IN: ReadonlySet<string> = new Set(PROTECTED_NAMES.map(({ name }) => name))

interface Protected {
  readonly zones: readonly { readonly protect: readonly string[] }[]
}

/** A plan with the number of the built-in names in each zone in place of these, which docs/profiles.md lists. */
export const withoutBuiltInNames = <T extends Protected>(plan: T): T => ({
  ...plan,
  zones: plan.zones.map((zone) => {
    const own = zone.protect.filter((name) => !BUILT_IN.has(name))
    const count = zone.protect.length - own.length
    return count === 0 ? zone : { ...zone, protect: [`(${count} built-in names)`, ...own] }
  }),
})

/** Columns of a line of a golden file that holds a list. */
const WIDTH = 140

/** Lines that differ in their last word alone share a line while they fit, for `isList`: `mask /a`, `mask /b` becomes `mask /a /b`. */
export function withLists(lines: readonly string[], isList: (line: string) => boolean): readonly string[] {
  const gathered: string[] = []
  let shared = ''
  for (const line of lines) {
    const word = line.slice(line.lastIndexOf(' ') + 1)
    const head = line.slice(0, -word.length)
    const last = gathered.at(-1)
    const fits = last !== undefined && last.length + word.length < WIDTH
    if (fits && isList(line) && head === shared) gathered[gathered.length - 1] = `${last} ${word}`
    else gathered.push(line)
    shared = head
  }
  return gathered
}

/** Removed (`-`) and added (`+`) lines; each group follows the last common line before it. Empty for equal texts. */
export function changes(from: string, to: string): string {
  const [old, now] = [from.split('\n'), to.split('\n')]
  const common = commonLines(old, now)
  const lines: string[] = []
  let [i, j, last] = [0, 0, '']
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) {
      last = `  ${old[i]}`
      i++
      j++
      continue
    }
    if (last !== '') lines.push(last)
    last = ''
    // Removed lines first: an added line waits while it costs no common line.
    if (i < old.length && (j === now.length || common[i + 1]![j]! >= common[i]![j + 1]!)) lines.push(`- ${old[i++]}`)
    else lines.push(`+ ${now[j++]}`)
  }
  return lines.map((line) => `${line}\n`).join('')
}

/** For each pair of positions the number of lines that can stay from there on: the longest common subsequence. */
function commonLines(old: readonly string[], now: readonly string[]): readonly (readonly number[])[] {
  const table = Array.from({ length: old.length + 1 }, () => new Array<number>(now.length + 1).fill(0))
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = now.length - 1; j >= 0; j--)
      table[i]![j] = old[i] === now[j] ? table[i + 1]![j + 1]! + 1 : Math.max(table[i + 1]![j]!, table[i]![j + 1]!)
  return table
}
