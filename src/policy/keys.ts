/** The keys of the schema as rows: for the manual, for the help of the options, for messages. Pure. */
import type { z } from 'zod'
import { type KeyMeaning, SECTIONS } from './schema.ts'

export interface KeyRow extends KeyMeaning {
  /** Dotted; keys of list elements are written `zones[].mode`. */
  readonly key: string
}

const LISTED = new Set<string>(['zones', 'credentials'])

/** Every key with its meaning, in the order of the schema; the keys of a section follow the section. */
export const KEY_ROWS: readonly KeyRow[] = Object.keys(SECTIONS[''].shape).flatMap((name) => [
  ...rowsOf('', name),
  ...(isSection(name) ? Object.keys(SECTIONS[name].shape).flatMap((inner) => rowsOf(name, inner)) : []),
])

/** The row of a key such as `resources.memory`; the caller names one that exists. */
export function meaningOf(key: string): KeyRow | undefined {
  return KEY_ROWS.find((row) => row.key === key)
}

function isSection(name: string): name is Exclude<keyof typeof SECTIONS, ''> {
  return name !== '' && Object.hasOwn(SECTIONS, name)
}

function rowsOf(section: keyof typeof SECTIONS, name: string): readonly KeyRow[] {
  const schema = (SECTIONS[section].shape as Readonly<Record<string, z.ZodType>>)[name]
  const meaning = schema?.meta() as KeyMeaning | undefined
  if (meaning?.unit === undefined) return []
  const prefix = section === '' ? '' : LISTED.has(section) ? `${section}[].` : `${section}.`
  return [{ ...meaning, key: prefix + name }]
}

/** The rows as a Markdown table, for docs/profiles.md. */
export function keyTable(): string {
  const rows = KEY_ROWS.map(({ key, unit, standard, enum: words, description }) => [
    code(key),
    words === undefined ? unit : words.map((word) => code(String(word))).join(' '),
    standard ?? '',
    description,
  ])
  return [['key', 'takes', 'default', 'meaning'], ['---', '---', '---', '---'], ...rows].map(tableRow).join('\n')
}

const code = (text: string) => `\`${text}\``
const tableRow = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
