import { describe, expect, test } from 'vitest'
import { shellWord } from '../../src/text/shell-word.ts'
import { decide, decideScript, shadowOf } from '../../src/worker/rules.ts'
import { divide, hiddenCharacter } from '../../src/worker/shell-words.ts'
import type { Shell } from '../../src/worker/worker.ts'
import { RULES as OPEN, SHELL_TEXTS } from './shell-texts.ts'
import { worker } from './support.ts'

function shell(yaml: string): Shell {
  const read = worker(`name: w\n${yaml}`, 'w.md').shell
  if (read === null) throw new Error('no shell was read')
  return read
}
const RULES = shell(`toolsets:
  shell:
    rules:
      - { pattern: git push, approval: blocked }
      - { pattern: git log, approval: preApproved }
      - { pattern: "npm *", approval: ask }
      - { pattern: "echo 'a b'", approval: preApproved }
      - { pattern: wc, approval: preApproved }`)

describe('the first rule whose words the command begins with decides', () => {
  test.each<[decision: string, commands: readonly (readonly string[])[]]>([
    [
      'run',
      [
        ['git', 'log'],
        ['git', 'log', '--oneline'],
        ['echo', 'a b', 'c'],
        ['wc', 'a\nb', '$(x)', '; rm'],
      ],
    ],
    ['ask', [['npm'], ['npm', 'test']]],
    [
      'block',
      [['git', 'push', 'origin'], ['git'], ['git', 'logs'], ['git log'], ['/usr/bin/git', 'log'], ['./git', 'log']],
    ],
    ['block', [['echo', 'a', 'b'], [''], ['g\u0456t', 'log'], ['git\u200b', 'log']]],
  ])('%s: %j', (decision, commands) => {
    expect(commands.filter((argv) => decide(RULES, argv).decision !== decision)).toEqual([])
  })

  test('a verdict names the rule and where it is written', () => {
    expect(decide(RULES, ['git', 'log'])).toEqual({
      decision: 'run',
      by: 'rule "git log"',
      why: 'w.md:7: toolsets.shell.rules.1: rule "git log" says run',
    })
  })

  test.each<[string, readonly string[], string]>([
    ['tools: Bash(git diff:*)', ['git', 'diff', 'x'], 'run'],
    ['tools: Bash(git diff *)', ['git', 'diff'], 'run'],
    ['tools: Bash(git diff)', ['git', 'diff'], 'run'],
    ['tools: Bash(git diff)', ['git', 'diff', 'x'], 'block'],
    ['tools: Bash', ['anything', 'at', 'all'], 'run'],
    ['tools: Bash(*)', ['anything'], 'run'],
    ['tools: Bash(npm run test*)', ['npm', 'run', 'tests'], 'block'],
    ['tools: "Bash(echo \'x)"', ['echo', 'x'], 'block'],
    ['shell_default: ask', ['x'], 'ask'],
    ['shell_default: { approval_required: false }', ['x'], 'run'],
    ['shell_default: { allowed: false }', ['x'], 'block'],
    ['toolsets: [shell]', ['x'], 'block'],
    ['toolsets: [shell_file_ops]', ['mv', 'a', 'b'], 'ask'],
  ])('%s: %j: %s', (yaml, argv, decision) => {
    expect(decide(shell(yaml), argv).decision).toBe(decision)
  })
})

describe('the text of -c is judged as what a shell would make of it', () => {
  const script = (text: string, allowShellSyntax = false) =>
    decideScript({ shell: RULES, script: text, allowShellSyntax }).decision
  const scriptByDefault = (value: 'run', text: string) => {
    const shell = { ...RULES, default: { value, from: { file: 'w.worker', line: 1, key: 'default' } } }
    return decideScript({ shell, script: text, allowShellSyntax: true }).decision
  }
  const signs = ['|', '&', ';', '<', '>', '(', ')', '$', '`', '{', '}', '\n', '\r']
  test.each<[decision: string, title: string, texts: readonly string[]]>([
    ['run', 'words', ['git log --oneline', 'git "log"', "g'i't log", 'wc *.ts']],
    ['block', 'what a rule blocks', ['git push', 'X=1 git push', 'eval git push', '! git push']],
    ['block', 'no command', ['', '   ', "wc 'a", 'wc a\\']],
    ['block', 'signs of a shell', [...signs.map((sign) => `wc a ${sign} b`), "wc 'a|b'"]],
    ['block', 'look-alikes of signs', ['wc a\uff1b b', 'wc a \u037e b', 'wc a \u01c0 b', 'wc\u00a0a']],
    ['block', 'hidden signs', ['wc a\u200b', 'wc \u202ea', 'wc \u001b[2J', 'wc a\u2028b']],
  ])('%s: %s', (decision, _title, texts) => {
    expect(texts.filter((text) => script(text) !== decision)).toEqual([])
  })

  test.each<[string, string]>([
    ['git log | wc', 'run'],
    ['git log > out.txt 2>&1', 'run'],
    ['git log\nwc a', 'run'],
    ['git log; git push', 'block'],
    ['git log && npm test', 'ask'],
    ['git log | sh', 'block'],
    ['git log $(rm x)', 'ask'],
    ['git log `rm x`', 'ask'],
    ['(git push)', 'block'],
    ['wc a \u037e b', 'block'],
    ['wc a\u200b', 'block'],
  ])('with shell syntax allowed %j: %s', (text, decision) => {
    expect(script(text, true)).toBe(decision)
  })

  test.each(['(git push)', '{ git push; }', 'wc $(git push)', 'wc `git push`'])(
    'with shell syntax allowed and a default that lets run, %j asks: no rule has seen what runs in it',
    (text) => {
      expect(scriptByDefault('run', text)).toBe('ask')
      expect(scriptByDefault('run', 'wc a')).toBe('run')
    },
  )
})

test.each(SHELL_TEXTS)('with shell syntax allowed and a default that lets run, %j: %s', (text, decision) => {
  const from = { file: 'w.worker', line: 1, key: 'rules' }
  const rules = OPEN.map(([tokens, said]) => ({
    pattern: tokens.join(' '),
    tokens,
    match: 'prefix' as const,
    decision: said,
    from,
  }))
  const shell = { rules, default: { value: 'run' as const, from } }
  expect(decideScript({ shell, script: text, allowShellSyntax: true }).decision).toBe(decision)
})

test('a program whose name holds a hidden sign is blocked, also where the default lets run what no rule names', () => {
  const from = { file: 'w.worker', line: 1, key: 'default' }
  const open = { ...RULES, default: { value: 'run' as const, from } }
  expect(decide(open, ['git\u200b', 'push']).decision).toBe('block')
  expect(decide(open, ['ls']).decision).toBe('run')
})

describe('dividing text into words', () => {
  test.each<[string, readonly string[]]>([
    ['a b  c', ['a', 'b', 'c']],
    ["a 'b c' d", ['a', 'b c', 'd']],
    ['a "b \\" c"', ['a', 'b " c']],
    ['a "b \\$ c"', ['a', 'b \\$ c']],
    ['a\\ b', ['a b']],
    ["''", ['']],
    ["a'b'c", ['abc']],
    ['a # b', ['a', '#', 'b']],
    ['', []],
  ])('%j', (text, tokens) => {
    expect(divide(text)).toEqual({ ok: true, tokens })
  })

  test('a word is quoted as a shell needs it', () => {
    expect(['a.b', 'a b', "it's", ''].map(shellWord)).toEqual(['a.b', "'a b'", "'it'\\''s'", "''"])
  })

  test('letters of other scripts are not hidden', () => {
    expect(hiddenCharacter('grüße 日本 🙂')).toBeUndefined()
  })
})

test('a rule below one that takes the same commands is never reached', () => {
  const { rules } = shell(
    'tools: Bash(git:*), Bash(git log:*), Bash(npm test), Bash(npm test), Bash(npm:*), Bash, Bash(x)',
  )
  expect(rules.map((_, index) => shadowOf(rules, index)?.pattern)).toEqual([
    undefined,
    'Bash(git:*)',
    undefined,
    'Bash(npm test)',
    undefined,
    undefined,
    'Bash',
  ])
})

describe('What --allow-shell-syntax would change is said', () => {
  const verdictOf = (script: string) => decideScript({ shell: RULES, script, allowShellSyntax: false })
  test('where no rule would block a part of the text', () => {
    expect(verdictOf('git log | wc').needsShellSyntax).toBe(true)
  })
  test.each(['git log | git push', 'git log | nothing-known', 'git push'])('and not for %s', (script) => {
    expect(verdictOf(script)).toMatchObject({ decision: 'block' })
    expect(verdictOf(script).needsShellSyntax).toBeUndefined()
  })
})
