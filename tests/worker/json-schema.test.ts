import { describe, expect, test } from 'vitest'
import { workerJsonSchema, workshopJsonSchema } from '../../src/worker/json-schema.ts'
import { expectFile } from '../support/generated.ts'

describe('the JSON schemas that editors use', () => {
  test.each([
    ['worker.schema.json', workerJsonSchema],
    ['workshop.schema.json', workshopJsonSchema],
  ])('%s is what the shapes say', (file, print) => {
    expectFile(`schemas/${file}`, print)
  })

  test('every key is explained', () => {
    const { properties } = JSON.parse(workerJsonSchema())
    const silent = Object.entries(properties).filter(([, schema]) => !('description' in (schema as object)))
    expect(silent.map(([key]) => key)).toEqual([])
  })
})
