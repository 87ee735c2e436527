import { expect, it } from 'vitest'
import { jsonIn, mappingIn } from '../../src/text/json.ts'

it('reads JSON of others, and takes what is none for absent', () => {
  expect(jsonIn('[1]')).toEqual([1])
  expect(jsonIn('{"half":')).toBeUndefined()
  expect(mappingIn('{"a":1}')).toEqual({ a: 1 })
  for (const other of ['[1]', 'null', '"text"', '7', '']) expect(mappingIn(other)).toBeUndefined()
})
