import { describe, expect, test } from 'vitest'
import {
  areVariables,
  divisionOf,
  invocationOf as invocationBy,
  keyName,
  keyWords,
} from '../../src/launch-cache/cache-key.ts'
import { fnv1a64 } from '../../src/os/checksum.ts'

const words = (line: string): readonly string[] => line.split(' ').filter(Boolean)

function invocationOf(words: readonly string[]) {
  const division = divisionOf(words, true)
  return division && invocationBy(division)
}

describe('how the caller wrote the command', () => {
  test.each<[line: string, options: string, program: string, variables?: string]>([
    ['true', '', 'true'],
    ['-- true -x', '', 'true'],
    ['--memory 1g -- ls -- x', '--memory 1g', 'ls'],
    ['--env A=b=c --env=B= --env C -- ls', '--env A= --env=B= --env C', 'ls', 'A=b=c B='],
    ['--memory 1g -c ls', '--memory 1g', '/bin/sh'],
    ['-lc ls a', '', '/bin/bash'],
    ['--memory 1g ls', '--memory 1g', 'ls'],
    ['--memory=1g --json true', '--memory=1g --json', 'true'],
    ['--memory -- ls', '--memory --', 'ls'],
    ['--env A=b env', '--env A=', 'env', 'A=b'],
    ['ls -c x', '', 'ls'],
    ['ls -- x', '', 'ls'],
  ])('%s is understood', (line, options, program, variables = '') => {
    expect(invocationOf(words(line))).toEqual({ options: words(options), variables: words(variables), program })
  })

  const LEFT = ['', '--memory 1g', '--memory', '--unknown ls', '--memor 1g ls', '-v /a:/b ls', '--help', '--', '--json']
  test.each([...LEFT, '-c', '-c ls --json', '-e ./x'])('"%s" is left to the full parser', (line) => {
    expect(invocationOf(words(line))).toBeUndefined()
  })
})

describe('a word that looks like a variable', () => {
  test.each<[line: string, read: string, is: boolean]>([
    ['--env A=b -- ls', 'A=b', true],
    ['--env A=b --env A=c --env D -- ls', 'A=b A=c D', true],
    ['--workdir --env --memory=1g -- ls', '', false],
    ['--workdir --env=A=b -- ls', '', false],
    ['--env =b -- ls', '=b', false],
  ])('of %s is one where the full parser has read "%s": %j', (line, read, is) => {
    const invocation = invocationOf(words(line))
    expect(invocation !== undefined && areVariables(invocation, words(read))).toBe(is)
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
    ['--env A= --env=B= --json', ['2', '--env *=', '--json']],
    ['--json --env=B=', ['2', '--json', '--env *=']],
    ['--env A= --json --env B= --env C=', ['3', '--env *=', '--json', '--env *=']],
    ['--env A --env B=', ['3', '--env', 'A', '--env *=']],
    ['--workdir --env A=', ['2', '--workdir', '--env *=']],
    ['--env --env', ['2', '--env', '--env']],
  ])('for any variables has of %s only the places', (options, expected) => {
    const invocation = { options: words(options), variables: [], program: 'ls', isForAnyVariables: true }
    const key = keyWords({ ...inputs, invocation })
    expect(key.slice(key.indexOf('ls') + 1, -4)).toEqual(expected)
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
