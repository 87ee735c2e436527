/** Lists of docs/reference/profiles.md and protected.md that are made from the code. */
import { KEY_ROWS, type KeyRow } from '../../src/policy/key-table.ts'
import { PROTECTED_NAMES, type ProtectedName, type ProtectedRoot } from '../../src/policy/protected.ts'
import { listItem } from '../support/generated.ts'

/** Every key with what it takes and means. */
export const keyList = (): string => KEY_ROWS.map(keyItem).join('\n')

/** Defaults of booleans and lists, which the page names once. */
const EMPTY: readonly string[] = ['false', '[]']

function keyItem({ key, unit, standard, enum: words, description }: KeyRow): string {
  const takes =
    words === undefined ? unit.replace('true or false', 'boolean') : words.map((word) => code(String(word))).join(', ')
  const preset = standard === undefined || EMPTY.includes(standard) ? '' : `; default ${standard}`
  return listItem(`${code(key)} (${takes}${preset}): ${description.replaceAll('*', '\\*')}`)
}

const code = (text: string) => `\`${text}\``

/** The names of a place by program. */
export function protectedList(where: ProtectedRoot): string {
  const names = PROTECTED_NAMES.filter((each) => each.where === where)
  const rows = [...new Set(names.map(({ tool }) => tool))].map((tool) => toolRow(names, tool))
  const shared = rows.filter(
    (row) => rows.filter(({ why }) => row.why !== undefined && why === row.why).length >= SHARED,
  )
  const items = rows.map((row) => {
    if (!shared.includes(row)) return `**${row.tool}** ${row.text}`
    const same = shared.filter(({ why }) => why === row.why)
    return same[0] === row ? `${row.why}: ${same.map(({ tool, files }) => `**${tool}** ${files}`).join('; ')}` : ''
  })
  return items
    .filter((item) => item !== '')
    .map(listItem)
    .join('\n')
}

/** So many tools with one and the same reason are one item of the list. */
const SHARED = 3

interface ToolRow {
  readonly tool: string
  readonly text: string
  /** The only reason; absent where there are more. */
  readonly why?: string
  readonly files: string
}

function toolRow(all: readonly ProtectedName[], tool: string): ToolRow {
  const names = all.filter((each) => each.tool === tool)
  const reasons = [...new Set(names.map(({ why }) => why))].map((why) => ({
    why,
    files: inBraces(names.filter((each) => each.why === why).map(({ name }) => name)).join(', '),
  }))
  const text = reasons.map(({ why, files }) => `${why}: ${files}`).join('; ')
  const [first] = reasons
  return { tool, text, files: first?.files ?? '', ...(reasons.length === 1 && first && { why: first.why }) }
}

/** Names that differ in the extension alone as one: `a.{b,c,d}`. */
function inBraces(names: readonly string[]): readonly string[] {
  const stemOf = (name: string): string => name.replace(/(?<=[^/])\.[^./]+$/, '')
  const stems = [...new Set(names.map(stemOf))]
  return stems.flatMap((stem) => {
    const same = names.filter((name) => stemOf(name) === stem)
    if (same.length < SHARED) return same.map((name) => `\`${name}\``)
    return [`\`${stem}.{${same.map((name) => name.slice(stem.length + 1)).join(',')}}\``]
  })
}
