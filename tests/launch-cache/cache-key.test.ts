import { describe, expect, test } from 'vitest'
import {
  areVariables,
  divisionOf,
  invocationOf as invocationBy,
  keyName,
  keyWords,
} from '../../src/launch-cache/cache-key.ts'
import { fnv1a64 } from '../../src/os/checksum.ts'

function invocationOf(words: readonly string[]) {
  const division = divisionOf(words, true)
  return division && invocationBy(division)
}

describe('how the caller wrote the command', () => {
  test.each([
    [['true'], { options: [], variables: [], program: 'true' }],
    [['--', 'true', '-x'], { options: [], variables: [], program: 'true' }],
    [['--memory', '1g', '--', 'ls', '--', 'x'], { options: ['--memory', '1g'], variables: [], program: 'ls' }],
    [
      ['--env', 'A=b=c', '--env=B=', '--env', 'C', '--', 'ls'],
      {
        options: ['--env', 'A=', '--env=B=', '--env', 'C'],
        variables: ['A=b=c', 'B='],
        program: 'ls',
      },
    ],
    [['--memory', '1g', '-c', 'ls'], { options: ['--memory', '1g'], variables: [], program: '/bin/sh' }],
    [['-lc', 'ls', 'a'], { options: [], variables: [], program: '/bin/bash' }],
    [['--memory', '1g', 'ls'], { options: ['--memory', '1g'], variables: [], program: 'ls' }],
    [['--memory=1g', '--json', 'true'], { options: ['--memory=1g', '--json'], variables: [], program: 'true' }],
    [['--memory', '--', 'ls'], { options: ['--memory', '--'], variables: [], program: 'ls' }],
    [['--env', 'A=b', 'env'], { options: ['--env', 'A='], variables: ['A=b'], program: 'env' }],
    [['ls', '-c', 'x'], { options: [], variables: [], program: 'ls' }],
    [['ls', '--', 'x'], { options: [], variables: [], program: 'ls' }],
  ])('%j is understood', (words, invocation) => {
    expect(invocationOf(words)).toEqual(invocation)
  })

  test.each([
    [[]],
    [['--memory', '1g']],
    [['--memory']],
    [['--unknown', 'ls']],
    [['--memor', '1g', 'ls']],
    [['-v', '/a:/b', 'ls']],
    [['--help']],
    [['--']],
    [['--json']],
    [['-c']],
    [['-c', 'ls', '--json']],
    [['-e', './x']],
  ])('%j is left to the full parser', (words) => {
    expect(invocationOf(words)).toBeUndefined()
  })
})

describe('a word that looks like a variable', () => {
  test.each<[words: readonly string[], read: readonly string[], is: boolean]>([
    [['--env', 'A=b', '--', 'ls'], ['A=b'], true],
    [['--env', 'A=b', '--env', 'A=c', '--env', 'D', '--', 'ls'], ['A=b', 'A=c', 'D'], true],
    [['--workdir', '--env', '--memory=1g', '--', 'ls'], [], false],
    [['--workdir', '--env=A=b', '--', 'ls'], [], false],
    [['--env', '=b', '--', 'ls'], ['=b'], false],
  ])('of %j is one where the full parser has read %j: %j', (words, read, is) => {
    const invocation = invocationOf(words)
    expect(invocation !== undefined && areVariables(invocation, read)).toBe(is)
  })
})

describe('the key', () => {
  const inputs = {
    version: '1',
    root: '/opt/llm-do',
    uid: 1,
    gid: 2,
    bootId: 'boot',
    cgroup: '0::/',
    capabilities: 'CapEff:\t0',
    userNamespace: 'user:[1]',
    mountNamespace: 'mnt:[2]',
    cwd: '/w',
    isAtTerminal: false,
    hasTerminal: false,
    invocation: { options: ['--memory', '1g'], variables: [], program: 'ls' },
    env: {
      PATH: '/bin',
      SECRET: 'x',
      LLM_DO_EXEC_PIDS: '9',
      DOCKER_TIMEOUT: '1',
      DOCKER_PASSWORD: 'y',
      LLM_DO_KEY: 'z',
    },
  } as const

  test('holds the variables that decide about plans, in the order of their bytes, and no other', () => {
    expect(keyWords(inputs).slice(-4)).toEqual(['3', 'DOCKER_TIMEOUT=1', 'LLM_DO_EXEC_PIDS=9', 'PATH=/bin'])
  })

  test.each([
    [
      ['--env', 'A=', '--env=B=', '--json'],
      ['2', '--env *=', '--json'],
    ],
    [
      ['--json', '--env=B='],
      ['2', '--json', '--env *='],
    ],
    [
      ['--env', 'A=', '--json', '--env', 'B=', '--env', 'C='],
      ['3', '--env *=', '--json', '--env *='],
    ],
    [
      ['--env', 'A', '--env', 'B='],
      ['3', '--env', 'A', '--env *='],
    ],
    [
      ['--workdir', '--env', 'A='],
      ['2', '--workdir', '--env *='],
    ],
    [
      ['--env', '--env'],
      ['2', '--env', '--env'],
    ],
  ])('for any variables has of %j only the places', (options, expected) => {
    const invocation = { options, variables: [], program: 'ls', isForAnyVariables: true }
    const words = keyWords({ ...inputs, invocation })
    expect(words.slice(words.indexOf('ls') + 1, -4)).toEqual(expected)
  })

  test('tells a caller at a terminal from others', () => {
    expect(keyName(keyWords({ ...inputs, isAtTerminal: true }))).not.toBe(keyName(keyWords(inputs)))
  })

  test('tells words apart that only differ in where one ends', () => {
    const other = {
      ...inputs,
      invocation: { options: ['--memory'], variables: [], program: '1g' },
    } as const
    expect(keyName(keyWords(inputs))).not.toBe(keyName(keyWords(other)))
  })

  test('is named by FNV-1a, whose published sums these are', () => {
    expect(fnv1a64(Buffer.from(''))).toBe('cbf29ce484222325')
    expect(fnv1a64(Buffer.from('foobar'))).toBe('85944171f73967e8')
  })
})
