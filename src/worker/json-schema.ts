/** Workers and workshops as JSON schemas, so that editors complete and check them. Pure. */
import { z } from 'zod'
import { SECTIONS } from '../policy/schema.ts'
import { nestedWorkshopShape, workerShape, workshopShape } from './shapes.ts'

type JsonSchema = Record<string, unknown>

/** The text of schemas/worker.schema.json: the front matter of a worker. */
export function workerJsonSchema(): string {
  return printed('llm-do worker (front matter)', { ...schemaOf(workerShape), required: ['name'] })
}

/** The text of schemas/workshop.schema.json: nested below `workshop`, or not. */
export function workshopJsonSchema(): string {
  const { $schema, ...plain } = schemaOf(workshopShape)
  const { $schema: _, ...nested } = schemaOf(nestedWorkshopShape)
  return printed('llm-do workshop', { $schema, anyOf: [nested, plain] })
}

function printed(title: string, schema: JsonSchema): string {
  return `${JSON.stringify({ title, ...schema }, null, 2)}\n`
}

function schemaOf(shape: z.ZodType): JsonSchema {
  return z.toJSONSchema(shape, { io: 'input', unrepresentable: 'any', override: describeKey }) as JsonSchema
}

/** What a network may be is read by hand, so its forms are named here; units and defaults become part of the description. */
function describeKey({
  zodSchema,
  jsonSchema,
}: {
  readonly zodSchema: unknown
  readonly jsonSchema: JsonSchema
}): void {
  if (zodSchema === SECTIONS[''].shape.network) {
    const { $schema: _, ...mapping } = schemaOf(SECTIONS.network)
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
