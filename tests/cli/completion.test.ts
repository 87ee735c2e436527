import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { dirSync } from 'tmp-promise'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bashCompletion, fishCompletion, zshCompletion } from '../../src/cli/completion.ts'
import { OPTIONS } from '../../src/policy/options.ts'
import { testWith } from '../support/needs.ts'

let directory: ReturnType<typeof dirSync>
beforeAll(() => {
  directory = dirSync({ unsafeCleanup: true, prefix: 'llm-do-completion-' })
  writeFileSync(join(directory.name, 'llm-do.bash'), bashCompletion())
  mkdirSync(join(directory.name, 'here/my folder'), { recursive: true })
  writeFileSync(join(directory.name, 'here/profile.yaml'), '')
})
afterAll(() => directory.removeCallback())

/** What a real bash offers for words as readline cuts them; the last one is being typed. */
function offered(...words: readonly string[]): readonly string[] {
  const script = `source ../llm-do.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _llm_do; printf '%s\\n' "\${COMPREPLY[@]}"`
  const cwd = join(directory.name, 'here')
  const printed = execFileSync('bash', ['--norc', '-c', script, 'bash', ...words], { cwd, encoding: 'utf8' })
  // readline shows a word once, however often it is offered.
  return [...new Set(printed.split('\n').filter((line) => line !== ''))]
}

describe('bash', () => {
  const rows: readonly [string, readonly string[], readonly string[]][] = [
    ['a command', ['llm-do', 'prof'], ['profiles']],
    ['a word of a command', ['llm-do', 'completion', 'z'], ['zsh']],
    ['an option', ['llm-do', 'exec', '--mem'], ['--memory']],
    ['an option of the short name of the program', ['llm-do-exec', '--same'], ['--same-path']],
    ['a value out of several', ['llm-do-exec', '--net', 're'], ['record', 'restricted']],
    ['a value after =', ['llm-do-exec', '--net', '=', 'h'], ['host']],
    ['all values after =', ['llm-do-exec', '--engine', '='], ['auto', 'bwrap', 'unshare']],
    ['an optional value after =', ['llm-do', 'exec', '--json', '=', 's'], ['shell']],
    ['a file', ['llm-do-exec', '--profile', 'prof'], ['profile.yaml']],
    ['a directory with a space', ['llm-do-exec', '--ro', 'my'], ['my folder']],
    ['an option after another one with its value', ['llm-do-exec', '--memory', '1g', '--timeo'], ['--timeout']],
    ['nothing of ours after --', ['llm-do-exec', '--', 'cat', '--mem'], []],
    ['nothing of ours behind the command', ['llm-do-exec', 'cat', '--mem'], []],
    ['files behind the command', ['llm-do-exec', 'cat', 'prof'], ['profile.yaml']],
    ['a program after --', ['llm-do-exec', '--', 'setpri'], ['setpriv']],
  ]
  test.each(rows)('completes %s', (_, words, expected) => {
    expect(offered(...words).toSorted()).toEqual([...expected].toSorted())
  })
})

/** The shell itself only where it is installed, which CI demands; the text is checked everywhere. */
describe.each([
  ['zsh', zshCompletion, ['-n']],
  ['fish', fishCompletion, ['--no-execute']],
] as const)('%s', (shell, print, check) => {
  test('knows every option', () => {
    const pattern = (name: string) => new RegExp(shell === 'zsh' ? `--${name}(=|=-)?\\[` : ` -l ${name} `)
    expect(OPTIONS.map(({ name }) => name).filter((name) => !pattern(name).test(print()))).toEqual([])
  })
  testWith(shell, 'accepts the text', () => {
    // Not by stdin: node's is a socket, which cannot be opened again.
    const file = join(directory.name, `llm-do.${shell}`)
    writeFileSync(file, print())
    const { status, stderr } = spawnSync(shell, [...check, file], { encoding: 'utf8' })
    expect([status, stderr]).toEqual([0, ''])
  })
})
