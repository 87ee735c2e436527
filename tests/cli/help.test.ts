import { describe, expect, test } from 'vitest'
import { parseArguments } from '../../src/cli/arguments.ts'
import { execUsage, programUsage } from '../../src/cli/help.ts'
import { DECLARED, SUBCOMMANDS, VERB_GROUPS } from '../../src/cli/subcommands.ts'
import { EXPLAINED_OPTIONS } from '../../src/policy/option-help.ts'
import { OPTION_GROUPS, OPTIONS } from '../../src/policy/options.ts'

describe('the help of exec', () => {
  const lines = execUsage().trimEnd().split('\n')
  test('is at most 80 columns wide', () => {
    expect(lines.filter((line) => line.length > 80)).toEqual([])
  })
  test('fits a tall terminal', () => {
    expect(lines.length).toBeLessThanOrEqual(60)
  })
  test.each(OPTIONS.filter(({ isRare }) => isRare !== true).map(({ name }) => name))(
    'names --%s once, with a meaning',
    (name) => {
      const at = lines.findIndex((line) => new RegExp(`^ {2}--${name}(?![\\w-])`).test(line))
      expect(at).toBeGreaterThan(-1)
      const row = /\S {2,}\S/.test((lines[at] ?? '').trimStart()) ? lines[at] : `${lines[at]}${lines[at + 1]}`
      expect((row ?? '').trim().split(/ {2,}/)).toHaveLength(2)
    },
  )
  test.each(OPTIONS.filter(({ isRare }) => isRare === true).map(({ name, group }) => [name, group]))(
    'names --%s once, with the others of %s that few look for',
    (name, group) => {
      const rest = lines.slice(lines.indexOf(`${group}:`) + 1)
      const own = rest.slice(
        0,
        rest.findIndex((line) => !line.startsWith(' ')),
      )
      const also = own.slice(own.findIndex((line) => line.startsWith('  also '))).join(' ')
      expect(also.split(/ +/).filter((word) => word === `--${name}`)).toHaveLength(1)
    },
  )
  test.each(OPTION_GROUPS)('has the group %s', (group) => {
    expect(lines).toContain(`${group}:`)
  })
})

test('the help of the program names every command once, in a group, and its meaning in one column', () => {
  const lines = programUsage().split('\n')
  const rows = lines.filter((line) => /^ {2}[a-z]/.test(line) && !line.startsWith('  llm-do'))
  expect(rows.map((row) => row.trim().split(' ')[0]).toSorted()).toEqual(SUBCOMMANDS.map(({ name }) => name).toSorted())
  expect(rows.filter((row) => !/^ {2}\S.{22} \S/.test(row))).toEqual([])
  expect(lines.filter((line) => line.length > 80)).toEqual([])
  for (const group of VERB_GROUPS) expect(lines).toContain(`${group}:`)
})

test.each(DECLARED.flatMap((one) => [one, ...(one.actions ?? [])].map((verb) => [verb.name, one] as const)))(
  'the help of %s is at most 60 lines of 80 columns',
  (name, declaration) => {
    const words = name === declaration.name ? ['--help'] : [name, '--help']
    const parsed = parseArguments(declaration, words, EXPLAINED_OPTIONS)
    const lines = 'help' in parsed ? parsed.help.split('\n') : []
    expect(lines.length).toBeLessThanOrEqual(60)
    expect(lines.slice(1).filter((line) => line.length > 80)).toEqual([])
  },
)
