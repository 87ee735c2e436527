import { expect, test } from 'vitest'
import { manualMarkdown, manualRoff } from '../../src/cli/man-page.ts'
import { OPTIONS } from '../../src/policy/options.ts'
import { expectFile } from '../support/generated.ts'

test('docs/reference/llm-do-exec.1.md is what the declarations say (make golden rewrites it)', () => {
  expectFile('docs/reference/llm-do-exec.1.md', manualMarkdown)
})

test.each(OPTIONS.map(({ name, environment }) => [name, environment]))(
  'the manual has --%s, whose variable %s follows its rule',
  (name, environment) => {
    expect(manualMarkdown().replaceAll(/\s+/g, ' ')).toContain(`**\\--${name}**`)
    expect(environment).toBe(`LLM_DO_EXEC_${name.toUpperCase().replaceAll('-', '_')}`)
  },
)

test('for man(1), nothing in a line of text is a request, and hyphens can be pasted', () => {
  const page = manualRoff({ version: '1.2.3', date: '2000-01-02' })
  const [title = '', ...lines] = page.split('\n')
  expect(title).toBe('.TH LLM\\-DO\\-EXEC 1 "2000-01-02" "llm\\-do\\-exec 1.2.3" "User Commands"')
  const requests = new Set(lines.filter((line) => /^['.]/.test(line)).map((line) => line.split(' ')[0]))
  expect([...requests].toSorted()).toEqual(['.EE', '.EX', '.PP', '.SH', '.SS', '.TP'])
  expect(page).toContain('.TP\n\\fB\\-\\-memory\\fR SIZE\n')
})
