/** zod schemas as JSON schemas, so that editors complete and check profiles, workers and workshops. Pure; `make golden` writes the files. */
import { z } from 'zod'

export type JsonSchema = Record<string, unknown>

export interface JsonSchemaOptions {
  /** Whether what is used twice becomes a reference. */
  readonly reused?: 'ref' | 'inline'
  /** Schemas whose values a reader of ours parses, so that zod cannot see their forms. */
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

/** JSON schema has no unit and no default for values like ours: both become part of the description that editors show. */
function describeKey(jsonSchema: JsonSchema): void {
  const { unit, standard, description } = jsonSchema
  if (unit === undefined) return
  const sentences = [
    description,
    `Takes: ${String(unit)}.`,
    ...(standard === undefined ? [] : [`Default: ${String(standard)}.`]),
  ]
  Object.assign(jsonSchema, { description: sentences.join(' ') })
  delete jsonSchema['unit']
  delete jsonSchema['standard']
}

export const printJsonSchema = (schema: JsonSchema): string => `${JSON.stringify(schema, null, 2)}\n`
