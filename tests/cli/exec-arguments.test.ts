import { describe, expect, test } from 'vitest'
import { type CommandLine, commandOf, readCommandLine as readWords } from '../../src/cli/exec-arguments.ts'
import { verbNamed } from '../../src/cli/subcommands.ts'
import { SandboxError } from '../../src/error.ts'

const readCommandLine = (words: readonly string[], hasBash = true): CommandLine => readWords(words, hasBash)

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
    expect(line.commandAt.flatMap(([from, to]) => words.slice(from, to))).toEqual(command)
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
  const SH = '/bin/sh'
  const BASH = '/bin/bash'
  test.each<[words: readonly string[], shell: string]>([
    [['-c', 'echo $1', 'name', 'arg'], SH],
    [['-c', 'echo $1', '--', 'arg', '--json'], SH],
    [['-c', 'x', '-', '--json'], SH],
    [['-c', 'x', '-bash'], SH],
    [['-c', '-e', 'x'], SH],
    [['-c', '--', 'x', '--', 'y'], SH],
    [['-ec', 'x'], SH],
    [['-e', '-u', '-c', 'x', '-c'], SH],
    [['-xc', 'x', '-c', 'y'], SH],
    [['-fnuc', 'x'], SH],
    [['-Bc', 'x'], BASH],
    [['-lc', 'x', 'name', 'arg'], BASH],
    [['-l', '-c', 'x'], BASH],
    [['-ilc', 'x'], BASH],
    [['-o', 'pipefail', '-c', 'x'], BASH],
    [['-euo', 'pipefail', '-c', 'x'], BASH],
    [['--login', '-c', 'x'], BASH],
    [['--noprofile', '--norc', '-eo', 'pipefail', './x.sh', 'a'], BASH],
    [['-e', './x.sh', 'a', '-c'], SH],
    [['-ex', 'x.sh'], SH],
    [['-l', '/x'], BASH],
  ])('%j is for %s, whose words come unchanged', (words, shell) => {
    expect(commandOf(readCommandLine(words))).toEqual([shell, ...words])
    expect(commandOf(readCommandLine(['--memory', '1g', ...words]))).toEqual([shell, ...words])
    expect(commandOf(readCommandLine(words, false))).toEqual([SH, ...words])
    expect(commandOf(readCommandLine(['--', ...words]))).toEqual(words)
  })

  test('is what rules see of it', () => {
    expect(readCommandLine(['-l', '-c', 'the text', 'name']).script).toBe('the text')
    expect(readCommandLine(['-c', '--', 'the text']).script).toBe('the text')
    expect(readCommandLine(['-e', './file']).script).toBeUndefined()
  })

  test('may begin with a dash, and options may follow it', () => {
    const line = readCommandLine(['-c', '--x', '--json'])
    expect([commandOf(line), line.given]).toEqual([['/bin/sh', '-c', '--x'], { json: 'native' }])
  })

  test('may have options on both sides, and then its own words', () => {
    const words = ['--memory', '1g', '-lc', 'x', '--rw', '.', 'name', '--json']
    const line = readCommandLine(words)
    expect([commandOf(line), line.given, line.optionsEnd]).toEqual([
      ['/bin/bash', '-lc', 'x', 'name', '--json'],
      { memory: '1g', rw: ['.'] },
      2,
    ])
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
    ['-lc without a script', ['-lc', '--'], /-lc: expected SCRIPT/],
    ['an option that only follows a script', ['-c', 'x', '--memry', '1g'], /--memry.*Did you mean --memory/],
    ['letters of a shell without a script or a file', ['-e', '--', 'x'], /-e/],
  ]
  test.each(rows)('%s', (_, words, message) => {
    expect(() => readCommandLine(words)).toThrow(message)
    expect(() => readCommandLine(words)).toThrow(SandboxError)
  })

  test.each([
    [['--siz', '2'], "unknown option '--siz' (Did you mean --size?)."],
    [['--memory'], '--memory: expected SIZE, got nothing.'],
    [['-c'], '-c: expected SCRIPT, got nothing.'],
  ])('%s after pool start: its own flags are near, too, and its own help is the hint', (words, message) => {
    const refused = () => readWords(words, true, { verb: verbNamed('pool', 'start') })
    expect(refused).toThrow(expect.objectContaining({ message, hint: 'llm-do pool start --help' }))
  })

  test('no command at all', () => {
    expect(() => commandOf(readCommandLine(['--memory', '1g']))).toThrow('no command')
    expect(() => commandOf(readCommandLine(['--']))).toThrow('no command')
  })
})
