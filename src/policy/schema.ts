/**
 * The schema of a policy, made from the declarations in keys/: it validates what people write and turns it into plain numbers and
 * words (bytes, milliseconds). Unknown keys are refused. The JSON schemas for editors come from it too.
 */
import { z } from 'zod'
import { isMapping } from '../text/json.ts'
import type { Reader } from '../text/units.ts'
import { ABOUT, KEYS, type ParsedSandbox } from './keys/index.ts'
import { type Field, type Fields, isSection, type Key, type KeyMeaning, type Section } from './keys/key.ts'

/** More than a person writes by hand, few enough to compare each with each. */
const LONGEST_LIST = 1000
/** Every zone is several mounts. */
const MOST_MAPPINGS = 256

/** A value that one of our readers understands: our words for what was expected, one way to say it. */
export function readBy<Output>(read: Reader<Output>, meta: object): z.ZodType<Output> {
  const schema = z.unknown().transform((value, context) => {
    const reading = read(value)
    if (reading.ok) return reading.value
    context.addIssue({ code: 'custom', message: reading.expected, params: { ...reading } })
    return z.NEVER
  })
  return schema.meta({ ...meta }) as unknown as z.ZodType<Output>
}

const meaningOf = ({ description, unit, standard, type, enum: words, examples }: Field): Partial<KeyMeaning> =>
  description === ''
    ? {}
    : {
        description,
        unit,
        ...(standard === undefined ? {} : { standard }),
        ...(type === undefined ? {} : { type }),
        ...(words === undefined ? {} : { enum: words }),
        // zod drops `examples` of what it cannot see through.
        ...(examples === undefined ? {} : { samples: examples }),
      }

const mappings = new Map<Fields, z.ZodObject>()

/** The same object for the same fields, so that the printers of JSON schemas recognise it. */
function mappingOf(fields: Fields): z.ZodObject {
  const known = mappings.get(fields) ?? z.strictObject(Object.fromEntries(Object.entries(fields).map(namedSchema)))
  mappings.set(fields, known)
  return known
}

const namedSchema = ([name, field]: readonly [string, Field]) =>
  [name, field.isRequired === true ? schemaOf(field) : schemaOf(field).optional()] as const

function schemaOf(field: Field): z.ZodType {
  const { shape } = field
  const meta = meaningOf(field)
  switch (shape.kind) {
    case 'value':
      return readBy(shape.read, meta)
    case 'list':
      return z
        .array(readBy(shape.read, { type: 'string' }))
        .max(LONGEST_LIST)
        .meta(meta)
    case 'mapping':
      return mappingOf(shape.fields).meta(meta)
    case 'mappings':
      return z.array(mappingOf(shape.fields)).max(MOST_MAPPINGS).meta(meta)
    case 'word-or-mapping':
      return wordOrMapping(shape).meta(meta)
  }
}

function wordOrMapping({ read, fields, join }: Extract<Field['shape'], { kind: 'word-or-mapping' }>): z.ZodType {
  return z.unknown().transform((value, context) => {
    if (isMapping(value)) {
      const mapping = mappingOf(fields).safeParse(value)
      if (mapping.success) return join(mapping.data as never)
      for (const issue of mapping.error.issues) context.addIssue({ ...issue, path: [...issue.path] } as never)
      return z.NEVER
    }
    const reading = read(value)
    if (reading.ok) return reading.value
    context.addIssue({ code: 'custom', message: reading.expected, params: { ...reading } })
    return z.NEVER
  })
}

/** Old names become the new ones; where the new one is present, too, an old name is an unknown key like any other. */
function renameOld(value: unknown, renamed: Section['renamed']): unknown {
  if (!isMapping(value)) return value
  const entries = Object.entries(value).map(([name, inner]) => {
    const now = Object.hasOwn(renamed, name) ? renamed[name] : undefined
    return now === undefined || Object.hasOwn(value, now) ? [name, inner] : [now, inner]
  })
  return Object.fromEntries(entries)
}

function sectionSchema({ keys, renamed }: Section): z.ZodType {
  const mapping = mappingOf(keys)
  return Object.keys(renamed).length === 0 ? mapping : z.preprocess((value) => renameOld(value, renamed), mapping)
}

const entrySchema = (entry: Key | Section): z.ZodType =>
  (isSection(entry) ? sectionSchema(entry) : schemaOf(entry)).optional()

const ENTRIES = Object.entries(KEYS as Readonly<Record<string, Key | Section>>)

/** The keys below `sandbox:`. */
export const sandboxSchema = z.strictObject(
  Object.fromEntries([
    ...Object.entries(ABOUT).map(namedSchema),
    ...ENTRIES.map(([name, entry]) => [name, entrySchema(entry)]),
  ]) as Readonly<Record<string, z.ZodType>>,
)

/** @returns what the values of a layer are read as, or every issue */
export const parseSandbox = (values: unknown): z.ZodSafeParseResult<ParsedSandbox> =>
  sandboxSchema.safeParse(values) as z.ZodSafeParseResult<ParsedSandbox>

/** A profile file: everything below one key, so that other programs can have theirs in the same file. */
export const profileSchema = z.strictObject({ sandbox: sandboxSchema })

/** The mappings below the keys of that name, which a message about an unknown key and the JSON schemas must see through. */
export const SECTIONS: Readonly<Record<string, z.ZodObject>> = Object.fromEntries(
  ENTRIES.flatMap(([name, entry]) => fieldsOf(entry).map((fields) => [name, mappingOf(fields)])),
)

/** @throws {TypeError} where no key of that name has a mapping below it: a mistake in the program */
export function sectionNamed(name: string): z.ZodObject {
  const section = SECTIONS[name]
  if (section === undefined) throw new TypeError(`no key ${name} with a mapping below it`)
  return section
}

function fieldsOf(entry: Key | Section): readonly Fields[] {
  if (isSection(entry)) return [entry.keys]
  return 'fields' in entry.shape ? [entry.shape.fields] : []
}
