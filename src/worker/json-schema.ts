/** Workers and workshops as JSON schemas, so that editors complete and check them. Pure. */
import { z } from 'zod'
import { sandboxSchema, sectionNamed } from '../policy/schema.ts'
import { nestedWorkshopShape, workerShape, workshopShape } from './shapes.ts'

type JsonSchema = Record<string, unknown>

/** The text of schemas/worker.schema.json: the front matter of a worker. */
export function workerJsonSchema(): string {
  return printed('llm-do worker (front matter)', { ...schemaOf(workerShape), required: ['name'] })
}

/** The text of schemas/workshop.schema.json: nested below `workshop`, or not. */
export function workshopJsonSchema(): string {
  return printed('llm-do workshop', schemaOf(z.union([nestedWorkshopShape, workshopShape])))
}

function printed(title: string, schema: JsonSchema): string {
  return `${JSON.stringify({ title, ...schema }, null, 2)}\n`
}

function schemaOf(shape: z.ZodType, reused: 'ref' | 'inline' = 'ref'): JsonSchema {
  return z.toJSONSchema(shape, { io: 'input', unrepresentable: 'any', reused, override: describeKey }) as JsonSchema
}

/** What a network may be is read by hand, so its forms are named here; units and defaults become part of the description. */
function describeKey({
  zodSchema,
  jsonSchema,
}: {
  readonly zodSchema: unknown
  readonly jsonSchema: JsonSchema
}): void {
  if (zodSchema === sandboxSchema.shape.network) {
    // By itself and not by reference: it is no part of the tree that is being printed.
    const { $schema: _, $defs: __, ...mapping } = schemaOf(sectionNamed('network'), 'inline')
    const { mode } = (mapping['properties'] ?? {}) as JsonSchema
    Object.assign(jsonSchema, { anyOf: [mode, mapping] })
  }
  const { unit, standard, description } = jsonSchema
  if (unit === undefined) return
  const words = [
    description,
    `Takes: ${String(unit)}.`,
    ...(standard === undefined ? [] : [`Default: ${String(standard)}.`]),
  ]
  Object.assign(jsonSchema, { description: words.join(' ') })
  delete jsonSchema['unit']
  delete jsonSchema['standard']
}
