import { describe, expect, test } from 'vitest'
import { type Arguments, parseArguments } from '../../src/cli/arguments.ts'
import { DECLARED } from '../../src/cli/subcommands.ts'
import { SandboxError } from '../../src/error.ts'
import { EXPLAINED_OPTIONS } from '../../src/policy/option-help.ts'

function parse(line: string): Arguments | { readonly help: string } {
  const [name, ...words] = line.split(' ')
  const declaration = DECLARED.find((one) => one.name === name)
  if (declaration === undefined) throw new Error(`no subcommand ${name}`)
  return parseArguments(declaration, words, EXPLAINED_OPTIONS)
}

describe('words of a subcommand become action, operands and flags', () => {
  test.each<[line: string, parsed: Arguments]>([
    ['ps --json', { operands: [], flags: { json: true } }],
    ['kill a b', { operands: ['a', 'b'], flags: {} }],
    ['kill -- -a', { operands: ['-a'], flags: {} }],
    ['profiles', { operands: [], flags: {} }],
    ['profiles show ci', { action: 'show', operands: ['ci'], flags: {} }],
    ['audit verify log', { action: 'verify', operands: ['log'], flags: {} }],
    [
      'doctor --self-test --engine=bwrap --engine unshare',
      { operands: [], flags: { 'self-test': true, engine: ['bwrap', 'unshare'] } },
    ],
    ['completion zsh', { operands: ['zsh'], flags: {} }],
    [
      'workers show --memory 1g reader --ro a --ro=b --workshop w.yaml',
      { action: 'show', operands: ['reader'], flags: { memory: '1g', ro: ['a', 'b'], workshop: 'w.yaml' } },
    ],
    ['workers check --json', { action: 'check', operands: [], flags: { json: true } }],
  ])('%s', (line, parsed) => {
    expect(parse(line)).toEqual(parsed)
  })
})

test.each([
  ['--rw . --size 2 --idle-timeout=none -- make --size 9', '--rw . -- make --size 9'],
  ['--size=2 --idle-timeout none -- --odd', '-- --odd'],
])('what pool start %s does not know itself stays the command line of exec', (words, operands) => {
  const flags = { size: '2', 'idle-timeout': 'none' }
  expect(parse(`pool start ${words}`)).toEqual({ action: 'start', operands: operands.split(' '), flags })
})

test.each([
  ['run --name a --rw . make --name b -h', { name: 'a' }, '--rw . make --name b -h'],
  ['run make --name=b --help', {}, 'make --name=b --help'],
  ['run -c echo --name a x --name b', { name: 'a' }, '-c echo x --name b'],
  ['run --rw . --nam', {}, '--rw . --nam'],
])('%s: flags behind the command stay with the command', (line, flags, operands) => {
  expect(parse(line)).toEqual({ operands: operands.split(' '), flags })
})

describe('what cannot be understood is refused, with what was meant', () => {
  test.each([
    [
      'ps --jsn',
      "ps: unknown option '--jsn' (Did you mean --json?).",
      'llm-do ps [--ended] [--cow] [--net NAME] [--json]',
    ],
    ['ps x', 'ps: unexpected word "x".', 'llm-do ps [--ended] [--cow] [--net NAME] [--json]'],
    ['audit', 'audit: expected verify FILE, got nothing.', 'llm-do audit verify FILE'],
    ['audit vrfy', 'audit: expected verify FILE, got "vrfy". Did you mean "verify"?', 'llm-do audit verify FILE'],
    ['audit verify', 'audit verify: expected FILE, got nothing.', 'llm-do audit verify FILE'],
    [
      'profiles shwo x',
      'profiles: expected [show NAME], got "shwo". Did you mean "show"?',
      'llm-do profiles [--json] [show NAME]',
    ],
    ['allow x', 'allow: expected ID HOST..., got "x".', 'llm-do allow ID HOST...'],
    ['cache remove', 'cache remove: expected PROJECT[/NAME]..., got nothing.', 'llm-do cache remove PROJECT[/NAME]...'],
    [
      'completion bsh',
      'completion: expected bash, zsh or fish, got "bsh". Did you mean "bash"?',
      'llm-do completion bash|zsh|fish',
    ],
    ['doctor --engine=x', '--engine: expected bwrap or unshare, got "x" (string).', 'llm-do doctor {{flags}}'],
    ['workers list --audit x', "workers list: unknown option '--audit'.", 'llm-do workers list [--json]'],
    ['workers show --memory', '--memory: expected SIZE, got nothing.', 'llm-do workers show {{flags}} NAME'],
    ['workers show --ro --json x', '--ro: expected SRC[:TARGET], got "--json".', '--ro=--json {{why}}'],
  ])('%s', (line, message, hint) => {
    const refused = () => parse(line)
    expect(refused).toThrow(SandboxError)
    const pattern = hint.split(/\{\{\w+\}\}/).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    const whole = expect.stringMatching(new RegExp(`^${pattern.join('.*')}$`))
    expect(refused).toThrow(expect.objectContaining({ code: 'USAGE', message, hint: whole }))
  })
})

describe('help', () => {
  const helpOf = (line: string): string => {
    const parsed = parse(`${line} --help`)
    return 'help' in parsed ? parsed.help : ''
  }

  test('of an action leaves the options of exec that it takes to the help of exec', () => {
    const text = helpOf('workers show')
    expect(text).toMatch(/^Usage: llm-do workers show /m)
    expect(text).toMatch(/^Also the options of llm-do exec .*: llm-do exec --help$/m)
    expect(text).not.toContain('--memory')
  })
})
