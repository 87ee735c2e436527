import { describe, expect, test } from 'vitest'
import { commandOf, readCommandLine } from '../../src/cli/exec-arguments.ts'
import { SandboxError } from '../../src/error.ts'

describe('the command begins', () => {
  const rows: readonly [string, readonly string[], readonly string[]][] = [
    ['after --', ['--memory', '1g', '--', 'ls', '-l'], ['ls', '-l']],
    ['at the first word that is no option', ['--memory', '1g', 'ls', '--memory'], ['ls', '--memory']],
    ['after --, options included', ['--', '--ro', '/'], ['--ro', '/']],
    ['with a second -- of its own', ['--', 'env', '--', 'x'], ['env', '--', 'x']],
    ['at a lone dash', ['-', 'x'], ['-', 'x']],
    ['at an empty word', ['', 'x'], ['', 'x']],
    ['after --json, whose value needs =', ['--json', 'true'], ['true']],
    ['after --json=shell', ['--json=shell', 'true'], ['true']],
    ['after a switch', ['--tty', 'true'], ['true']],
  ]
  test.each(rows)('%s', (_, words, command) => {
    const line = readCommandLine(words)
    expect(line.command).toEqual(command)
    expect(words.slice(line.commandAt)).toEqual(command)
  })

  test('and its words are not touched', () => {
    const words = ['', '--bind', 'a\nb', '$(x)', 'x'.repeat(100_000), '--json=bad', '-c']
    expect(readCommandLine(['--', 'cmd', ...words]).command).toEqual(['cmd', ...words])
  })
})

describe('options', () => {
  const rows: readonly [readonly string[], Readonly<Record<string, unknown>>][] = [
    [['--memory', '512m'], { memory: '512m' }],
    [['--memory=512m'], { memory: '512m' }],
    [['--memory=1g', '--memory=2g'], { memory: '2g' }],
    [['--ro', 'a', '--ro', 'b'], { ro: ['a', 'b'] }],
    [['--env', 'A=b=c'], { env: ['A=b=c'] }],
    [['--env=A='], { env: ['A='] }],
    [['--cpus', '-1'], { cpus: '-1' }],
    [['--same-path'], { 'same-path': true }],
    [['--json'], { json: 'native' }],
    [['--json=task'], { json: 'task' }],
    [['--ro=--x'], { ro: ['--x'] }],
    [['--plan', '--why', 'network.mode'], { plan: 'text', why: 'network.mode' }],
    [['--plan=json'], { plan: 'json' }],
  ]
  test.each(rows)('%j', (words, given) => {
    expect(readCommandLine([...words, '--', 'x']).given).toEqual(given)
  })
})

describe('a script', () => {
  test('is run by sh, and words after it are its arguments', () => {
    expect(commandOf(readCommandLine(['-c', 'echo $1', 'name', 'arg']))).toEqual([
      '/bin/sh',
      '-c',
      'echo $1',
      'name',
      'arg',
    ])
  })
  test('may begin with a dash, and options may follow it', () => {
    const line = readCommandLine(['-c', '--x', '--json'])
    expect([commandOf(line), line.given]).toEqual([['/bin/sh', '-c', '--x'], { json: 'native' }])
  })
})

describe('what cannot be understood is refused', () => {
  const rows: readonly [string, readonly string[], RegExp][] = [
    ['an unknown option, with the nearest one', ['--memry', '1g', '--', 'x'], /--memry.*Did you mean --memory/],
    ['an unknown short option', ['-x', '--', 'y'], /-x/],
    ['a missing value at the end', ['--memory'], /--memory: expected SIZE, got nothing/],
    ['a missing value before --', ['--memory', '--', 'x'], /--memory: expected SIZE, got "--"/],
    ['a missing value before an option', ['--ro', '--json', 'x'], /--ro: expected SRC.*got "--json"/],
    ['a value for a switch', ['--tty=yes', 'x'], /--tty/],
    ['an unknown form of JSON', ['--json=xml', 'x'], /--json: expected native.*"xml"/],
    ['an unknown approval', ['--approval', 'maybe', 'x'], /--approval: expected prompt/],
    ['-c without a script', ['-c'], /-c: expected SCRIPT/],
  ]
  test.each(rows)('%s', (_, words, message) => {
    expect(() => readCommandLine(words)).toThrow(message)
    expect(() => readCommandLine(words)).toThrow(SandboxError)
  })

  test('no command at all', () => {
    expect(() => commandOf(readCommandLine(['--memory', '1g']))).toThrow('no command')
    expect(() => commandOf(readCommandLine(['--']))).toThrow('no command')
  })
})
