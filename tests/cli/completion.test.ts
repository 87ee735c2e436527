import { expect, test } from 'vitest'
import { completionOf } from '../../src/cli/completed-word.ts'
import { DECLARED } from '../../src/cli/subcommands.ts'
import { OPTIONS } from '../../src/policy/options.ts'

/** The offers that begin like the last word, the kinds of names and paths, and where a command starts. */
function offered(line: string): string {
  const words = line.split(' ')
  const { offers = [], names = [], paths, prefix = '', commandAt } = completionOf(words)
  const fitting = offers.map(([word]) => word).filter((word) => word.startsWith(words.at(-1) ?? ''))
  const others = [...names.map((kind) => `<${kind}>`), ...(paths === undefined ? [] : [`<${paths} ${prefix}>`])]
  return [...fitting, ...others, ...(commandAt === undefined ? [] : [`<command ${commandAt}>`])].join(' ')
}

test.each([
  ['prof', 'profiles'],
  ['completion z', 'zsh'],
  ['pool sto', 'stop'],
  ['profiles show stri', '<profiles>'],
  ['profiles show --js', '<profiles>'],
  ['workers show --works', '--workshop <workers>'],
  ['workers check --mem', '--memory <directories >'],
  ['kill 1', '<runs>'],
  ['undo x', '<layers>'],
  ['stop x', '<sandboxes>'],
  ['homes remove x', '<homes>'],
  ['why x', '<failed-runs>'],
  ['cache remove x', '<caches>'],
  ['exec --home x', '<homes> <directories >'],
  ['exec --allow-host x', '<refused-hosts>'],
  ['exec --allow-host=x', '<refused-hosts>'],
  ['audit verify x', '<files >'],
  ['doctor --engine b', 'bwrap'],
  ['exec --mem', '--memory'],
  ['exec --json=s', '--json=shell'],
  ['exec --net re', 'restricted record'],
  ['exec --net=h', '--net=host'],
  ['exec --profile x', '<profiles> <files >'],
  ['exec --worker x', '<workers> <files >'],
  ['exec --ro x', '<files >'],
  ['exec --zone data=x', '<files data=>'],
  ['exec --zone=data=x', '<files --zone=data=>'],
  ['exec --memory 1g --timeo', '--timeout'],
  ['exec -c x --timeo', '--timeout'],
  ['exec -- cat --mem', '<command 2>'],
  ['exec cat --mem', '<command 1>'],
  ['exec ca', '<command 1>'],
  ['exec --memory 1g ca', '<command 3>'],
  ['pool start --siz', '--size'],
  ['nothing x', ''],
])('llm-do %s is completed by %s', (line, expected) => {
  expect(offered(line)).toBe(expected)
})

test('every verb, action and option is offered', () => {
  const words = (line: string) => completionOf(line.split(' ')).offers?.map(([word]) => word) ?? []
  expect(words('')).toEqual(expect.arrayContaining(DECLARED.map(({ name }) => name)))
  expect(words('exec -')).toEqual(expect.arrayContaining(OPTIONS.map(({ name }) => `--${name}`)))
  for (const { name, actions = [], flags = [] } of DECLARED) {
    const own = flags.map((flag) => `--${flag.name}`)
    expect(words(`${name} -`)).toEqual(expect.arrayContaining([...actions.map((action) => action.name), ...own]))
  }
})
