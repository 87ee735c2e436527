/** zod schemas as JSON schemas, so that editors complete and check profiles, workers and workshops. Pure; `make golden` writes the files. */
import { z } from 'zod'

export type JsonSchema = Record<string, unknown>

export interface JsonSchemaOptions {
  /** Whether what is used twice becomes a reference. */
  readonly reused?: 'ref' | 'inline'
  /** Schemas whose values one of our readers parses, so that zod cannot see their forms. */
  readonly replaced?: ReadonlyMap<unknown, () => JsonSchema>
}

export function jsonSchemaOf(schema: z.ZodType, { reused = 'inline', replaced }: JsonSchemaOptions = {}): JsonSchema {
  const describe = ({ zodSchema, jsonSchema }: { readonly zodSchema: unknown; readonly jsonSchema: JsonSchema }) => {
    Object.assign(jsonSchema, replaced?.get(zodSchema)?.())
    describeKey(jsonSchema)
  }
  return z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any', reused, override: describe }) as JsonSchema
}

/** A schema that is part of another one: without what only a whole file has. */
export function partialJsonSchemaOf(schema: z.ZodType): JsonSchema {
  const { $schema: _, $defs: __, ...part } = jsonSchemaOf(schema)
  return part
}

/** Examples that an editor offers for a unit; words are offered from their list. The examples of a key replace these. */
const EXAMPLES: Readonly<Record<string, readonly unknown[]>> = {
  size: ['512m', '2GiB'],
  'size or none': ['512m', '2GiB', 'none'],
  time: ['12h', '7d'],
  'time or none': ['30s', '5m', 'none'],
  'number or none': [256, 'none'],
  'cores or all': [0.5, 2, 'all'],
  'name or path': ['build', './own.yaml'],
  'name or none': ['agent', 'none'],
  name: ['data'],
  path: ['./data', '~/data'],
  'absolute path': ['/data'],
  image: ['node:22-bookworm'],
  host: ['api.example.com'],
  header: ['Authorization'],
  'env:NAME or file:PATH': ['env:API_TOKEN', 'file:~/.config/token'],
  'list of hosts': [['registry.npmjs.org', '*.example.com:8443']],
  'list of ports': [[5432]],
  'list of paths': [['deploy.sh']],
  'list of requests': [['GET api.example.com/v1/*']],
}

/** JSON schema has no unit and no default for values like ours: both become part of the description that editors show. */
function describeKey(jsonSchema: JsonSchema): void {
  const { unit, standard, description } = jsonSchema
  if (unit === undefined) return
  const sentences = [
    description,
    `Takes: ${String(unit)}.`,
    ...(standard === undefined ? [] : [`Default: ${String(standard)}.`]),
  ]
  const examples = jsonSchema['samples'] ?? EXAMPLES[String(unit)]
  Object.assign(jsonSchema, { description: sentences.join(' '), ...(examples === undefined ? {} : { examples }) })
  delete jsonSchema['unit']
  delete jsonSchema['standard']
  delete jsonSchema['samples']
}

export const printJsonSchema = (schema: JsonSchema): string => `${JSON.stringify(schema, null, 2)}\n`
