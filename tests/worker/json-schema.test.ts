import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { workerJsonSchema, workshopJsonSchema } from '../../src/worker/json-schema.ts'

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

  test('every key is explained', () => {
    const { properties } = JSON.parse(workerJsonSchema())
    const silent = Object.entries(properties).filter(([, schema]) => !('description' in (schema as object)))
    expect(silent.map(([key]) => key)).toEqual([])
  })
})
