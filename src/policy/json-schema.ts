/** The schema of profiles as JSON schema, so that editors complete and check them. Pure; `make golden` writes the file. */
import { z } from 'zod'
import type { KeyMeaning } from './keys/key.ts'
import { profileSchema, sandboxSchema, sectionNamed } from './schema.ts'

type JsonSchema = Record<string, unknown>

const TITLE = 'llm-do exec profile'

/** The text of schemas/profile.schema.json. */
export function profileJsonSchema(): string {
  const schema = z.toJSONSchema(profileSchema, { io: 'input', unrepresentable: 'any', override: describeKey })
  return `${JSON.stringify({ ...schema, title: TITLE }, null, 2).replace(SHORT_LIST, onOneLine)}\n`
}

/** A list of words, as JSON.stringify spreads it. */
const SHORT_LIST = /^( *"\w+": )\[\n([^[\]{}]*?)\n *\](,?)$/gm
const LINE_WIDTH = 120

/** The project's formatter joins what fits on a line; the generated file has to look the same. */
function onOneLine(spread: string, head: string, words: string, comma: string): string {
  const joined = `${head}[${words.trim().replace(/,\n\s*/g, ', ')}]`
  return joined.length + comma.length <= LINE_WIDTH ? joined + comma : spread
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
  if (zodSchema === sandboxSchema.shape.network) Object.assign(jsonSchema, { anyOf: networkForms() })
  if (unit === undefined) return
  const words = [description, `Takes: ${unit}.`, ...(standard === undefined ? [] : [`Default: ${standard}.`])]
  Object.assign(jsonSchema, rest, { description: words.join(' ') })
  delete jsonSchema.unit
  delete jsonSchema.standard
}

/** The words of `network: none`, and the mapping. */
function networkForms(): readonly unknown[] {
  const { $schema: _, ...mapping } = z.toJSONSchema(sectionNamed('network'), {
    io: 'input',
    unrepresentable: 'any',
    override: describeKey,
  })
  const { mode } = mapping.properties ?? {}
  return [mode, mapping]
}
