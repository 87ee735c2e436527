/** Workers and workshops as JSON schemas. Pure; `make golden` writes the files. */
import { z } from 'zod'
import { jsonSchemaOf, printJsonSchema } from '../config/json-schema.ts'
import { REPLACED } from '../policy/json-schema.ts'
import { writtenWorkerShape, writtenWorkshopShape } from './schema.ts'

const OPTIONS = { reused: 'ref', replaced: REPLACED } as const

/** The text of schemas/worker.schema.json: the front matter of a worker. */
export function workerJsonSchema(): string {
  const schema = jsonSchemaOf(writtenWorkerShape, OPTIONS)
  return printJsonSchema({ title: 'llm-do worker (front matter)', ...schema, required: ['name'] })
}

/** The text of schemas/workshop.schema.json: nested below `workshop`, or not. */
export function workshopJsonSchema(): string {
  const schema = jsonSchemaOf(
    z.union([z.strictObject({ workshop: writtenWorkshopShape }), writtenWorkshopShape]),
    OPTIONS,
  )
  return printJsonSchema({ title: 'llm-do workshop', ...schema })
}
