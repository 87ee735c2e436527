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

/** Keys with keys below them have no line in the manual. */
const SECTIONS = {
  docker: 'Settings of the Docker backend.',
  cow: 'How changes to copy-on-write directories are kept.',
  resources: 'Limits of memory, processors, processes, time, disk and output.',
  env: 'Environment variables of the command.',
}

/** Keys of a policy that zod does not see through, and descriptions of sections. */
export const REPLACED: ReadonlyMap<unknown, () => JsonSchema> = new Map([
  [sandboxSchema.shape['network'], networkForms],
  [sandboxSchema, () => ({ description: 'What the command may see, reach and use.' })],
  ...Object.entries(SECTIONS).map(
    ([name, description]) => [sandboxSchema.shape[name], () => ({ description })] as const,
  ),
])
