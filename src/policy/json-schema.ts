/** The schema of profiles as JSON schema, so that editors complete and check them. Pure; `make golden` writes the file. */
import { z } from 'zod'
import { type KeyMeaning, profileSchema, SECTIONS } from './schema.ts'

type JsonSchema = Record<string, unknown>

const TITLE = 'llm-do exec profile'

/** The text of schemas/profile.schema.json. */
export function profileJsonSchema(): string {
  const schema = z.toJSONSchema(profileSchema, { io: 'input', unrepresentable: 'any', override: describeKey })
  return `${JSON.stringify({ ...schema, title: TITLE }, null, 2)}\n`
}

/** Unit and default are no words of JSON schema for values like ours: they become part of the description that editors show. */
function describeKey({
  zodSchema,
  jsonSchema,
}: {
  readonly zodSchema: unknown
  readonly jsonSchema: JsonSchema
}): void {
  const { unit, standard, description, ...rest } = jsonSchema as JsonSchema & Partial<KeyMeaning>
  if (zodSchema === SECTIONS[''].shape.network) Object.assign(jsonSchema, { anyOf: networkForms() })
  if (unit === undefined) return
  const words = [description, `Takes: ${unit}.`, ...(standard === undefined ? [] : [`Default: ${standard}.`])]
  Object.assign(jsonSchema, rest, { description: words.join(' ') })
  delete jsonSchema.unit
  delete jsonSchema.standard
}

/** The words of `network: none`, and the mapping. */
function networkForms(): readonly unknown[] {
  const { $schema: _, ...mapping } = z.toJSONSchema(SECTIONS.network, {
    io: 'input',
    unrepresentable: 'any',
    override: describeKey,
  })
  const { mode } = mapping.properties ?? {}
  return [mode, mapping]
}
