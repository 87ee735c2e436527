/** The schema of profiles as JSON schema. Pure; `make golden` writes the file. */
import { type JsonSchema, jsonSchemaOf, partialJsonSchemaOf, printJsonSchema } from '../config/json-schema.ts'
import { profileSchema, sandboxSchema, sectionNamed } from './schema.ts'

/** The text of schemas/profile.schema.json. */
export function profileJsonSchema(): string {
  return printJsonSchema({ title: 'llm-do exec profile', ...jsonSchemaOf(profileSchema, { replaced: REPLACED }) })
}

/** The words of `network: none`, and the mapping. */
function networkForms(): JsonSchema {
  const mapping = partialJsonSchemaOf(sectionNamed('network'))
  const { mode } = (mapping['properties'] ?? {}) as JsonSchema
  return { anyOf: [mode, mapping] }
}

/** Keys of a policy that zod does not see through. */
export const REPLACED: ReadonlyMap<unknown, () => JsonSchema> = new Map([
  [sandboxSchema.shape['network'], networkForms],
])
