import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { manualPage } from '../../src/cli/man-page.ts'
import { OPTIONS } from '../../src/policy/options.ts'
import { isWritingGoldens } from '../support/golden.ts'

const file = join(import.meta.dirname, '../../docs/llm-do-exec.1.md')

test('docs/llm-do-exec.1.md is what the declarations say (make golden rewrites it)', () => {
  if (isWritingGoldens()) writeFileSync(file, manualPage())
  expect(readFileSync(file, 'utf8')).toBe(manualPage())
})

test.each(OPTIONS.map(({ name, environment }) => [name, environment]))(
  'the manual has --%s and %s',
  (name, environment) => {
    expect(manualPage()).toContain(`**\\--${name}**`)
    expect(manualPage().replaceAll('\\', '')).toContain(`Variable: ${environment}.`)
  },
)
