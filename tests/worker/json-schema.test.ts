import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { workerJsonSchema, workshopJsonSchema } from '../../src/worker/json-schema.ts'
import { KNOWN_WORKER_KEYS, WORKSHOP_KEYS } from '../../src/worker/schema.ts'

/** As much of a JSON schema as is looked at here. */
interface Schema {
  readonly $ref?: string
  readonly anyOf: readonly Schema[]
  readonly properties: object
  readonly additionalProperties: boolean
}

const SCHEMAS = path.join(import.meta.dirname, '..', '..', 'schemas')

describe('the JSON schemas that editors use', () => {
  test.each([
    ['worker.schema.json', workerJsonSchema],
    ['workshop.schema.json', workshopJsonSchema],
  ])('%s is what the shapes say', (file, print) => {
    const at = path.join(SCHEMAS, file)
    if (process.env['LLM_DO_GOLDEN'] === 'write') writeFileSync(at, print())
    expect(readFileSync(at, 'utf8')).toBe(print())
  })

  test('a worker needs a name, and its sandbox knows no other keys', () => {
    const schema = JSON.parse(workerJsonSchema())
    expect(schema.required).toEqual(['name'])
    expect(Object.keys(schema.properties).every((key) => KNOWN_WORKER_KEYS.includes(key))).toBe(true)
    const follow = (one: Schema): Schema =>
      one.$ref === undefined ? one : follow(schema.$defs[one.$ref.replace('#/$defs/', '')])
    const [sandbox] = follow(schema.properties.sandbox).anyOf.map(follow)
    expect(sandbox?.additionalProperties).toBe(false)
    expect(Object.keys(sandbox?.properties ?? {})).toEqual(
      expect.arrayContaining(['zones', 'paths', 'mounts', 'network', 'readonly']),
    )
  })

  test('a workshop is nested or not', () => {
    const { $defs, anyOf } = JSON.parse(workshopJsonSchema())
    const resolved = anyOf.map((one: { $ref?: string }) =>
      one.$ref === undefined ? one : $defs[one.$ref.replace('#/$defs/', '')],
    )
    expect(Object.keys(resolved[0].properties)).toEqual(['workshop'])
    expect(Object.keys(resolved[1].properties)).toEqual(WORKSHOP_KEYS)
  })

  test('every key is explained', () => {
    const { properties } = JSON.parse(workerJsonSchema())
    const silent = Object.entries(properties).filter(([, schema]) => !('description' in (schema as object)))
    expect(silent.map(([key]) => key)).toEqual([])
  })
})
