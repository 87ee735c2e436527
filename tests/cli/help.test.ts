import { describe, expect, test } from 'vitest'
import { execUsage, programUsage } from '../../src/cli/help.ts'
import { SUBCOMMANDS } from '../../src/cli/subcommands.ts'
import { OPTION_GROUPS, OPTIONS } from '../../src/policy/options.ts'

describe('the help of exec', () => {
  const lines = execUsage().split('\n')
  test('is at most 80 columns wide', () => {
    expect(lines.filter((line) => line.length > 80)).toEqual([])
  })
  test('fits a tall terminal', () => {
    expect(lines.length).toBeLessThanOrEqual(73)
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

test('the help of the program names every command', () => {
  const text = programUsage()
  for (const { name } of SUBCOMMANDS) expect(text).toMatch(new RegExp(`^ {2}${name}( |$)`, 'm'))
  expect(text.split('\n').filter((line) => line.length > 80)).toEqual([])
})
