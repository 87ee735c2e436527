/** The keys as rows: for the manual, for the help of the options, for messages. Pure. */
import { ABOUT, KEYS } from './keys/index.ts'
import { type Field, isSection, type Key, type KeyMeaning, type Section } from './keys/key.ts'

export interface KeyRow extends KeyMeaning {
  /** Dotted; keys of list elements are written `zones[].mode`. */
  readonly key: string
}

const ENTRIES = Object.entries({ ...ABOUT, ...KEYS } as Readonly<Record<string, Field | Key | Section>>)

/** Every key with its meaning, in the order of the table; the keys of a mapping follow it. */
export const KEY_ROWS: readonly KeyRow[] = ENTRIES.flatMap(([name, entry]) =>
  'keys' in entry && isSection(entry as Section)
    ? Object.entries(entry.keys).flatMap(([inner, key]) => rowsOf(`${name}.${inner}`, key))
    : rowsOf(name, entry as Field),
)

/** The row of a key such as `resources.memory`; the caller names one that exists. */
export function meaningOf(key: string): KeyRow | undefined {
  return KEY_ROWS.find((row) => row.key === key)
}

function rowsOf(key: string, { description, unit, standard, enum: words, shape }: Field): readonly KeyRow[] {
  const fields = 'fields' in shape ? Object.entries(shape.fields) : []
  const prefix = shape.kind === 'mappings' ? `${key}[].` : `${key}.`
  const own = {
    key,
    description,
    unit,
    ...(standard === undefined ? {} : { standard }),
    ...(words === undefined ? {} : { enum: words }),
  }
  return [...(unit === '' ? [] : [own]), ...fields.flatMap(([name, field]) => rowsOf(prefix + name, field))]
}
