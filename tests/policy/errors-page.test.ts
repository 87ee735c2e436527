import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { ERROR_CODES } from '../../src/error.ts'

test('every error code has a heading in docs/reference/errors.md, in the order of the catalogue, with something to do', () => {
  const page = readFileSync(new URL('../../docs/reference/errors.md', import.meta.url), 'utf8')
  const sections = page.split(/^## /m).slice(1)
  expect(sections.map((section) => section.split('\n')[0])).toEqual(Object.keys(ERROR_CODES))
  expect(sections.filter((section) => !section.includes('**Do:**'))).toEqual([])
})
