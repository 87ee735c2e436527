import { expect, test } from 'vitest'
import { lineOf } from '../../../src/backends/namespace/terminator.ts'

const REFUSED = { host: 'api.test', port: 443, kind: 'form', what: 'GET /', count: 1 }

test.each([{ ca: 'PEM' }, { refused: [], omitted: 0 }, { refused: [REFUSED], omitted: 3 }])('%j is a line', (line) => {
  expect(lineOf(JSON.stringify(line))).toEqual(line)
})

const REFUSALS = ['5,"omitted":0', '[null],"omitted":0', '[{"host":1}],"omitted":0', '[]'].map(
  (text) => `{"refused":${text}}`,
)
test.each(['', 'ca', 'null', '5', '"ca"', '[]', '{}', '{"ca":{}}', ...REFUSALS])('%s is none', (text) => {
  expect(lineOf(text)).toBeUndefined()
})
