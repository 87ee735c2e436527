/** The rules of a worker as the client judges by them, compared with src/worker/rules.ts: the client lets nothing run that is not allowed there. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { beforeAll, expect, test } from 'vitest'
import { type LaunchRecord, writeLaunchFile } from '../../src/backends/namespace/launch-file.ts'
import type { Approval } from '../../src/worker/approval.ts'
import { compileRules } from '../../src/worker/compile.ts'
import { decide, decideScript } from '../../src/worker/rules.ts'
import type { Decision, Rule, Shell } from '../../src/worker/worker.ts'
import { newDirectory } from '../support/directory.ts'
import { driver } from '../support/driver.ts'
import { describeWith } from '../support/needs.ts'
import { RULES, SHELL_TEXTS } from '../worker/shell-texts.ts'

const built = { file: '' }

/** A command: its words, or the text of -c. */
type Case = readonly string[] | string

const casesAsWords = (cases: readonly Case[]): string =>
  cases
    .flatMap((one) => (typeof one === 'string' ? ['-c', one] : ['--', String(one.length), ...one]))
    .map((word) => `${word}\0`)
    .join('')

/** @returns the decider that lets each of them run, empty where none does */
async function whoLetsRun(records: readonly LaunchRecord[], cases: readonly Case[]): Promise<readonly string[]> {
  await writeFile(built.file, writeLaunchFile(records))
  const options = { input: casesAsWords(cases), stripFinalNewline: false }
  const { stdout } = await execa(driver('native/rules'), [built.file], options)
  return stdout.split('\n').slice(0, -1)
}

const letRun = async (...words: Parameters<typeof whoLetsRun>): Promise<readonly boolean[]> =>
  (await whoLetsRun(...words)).map((by) => by !== '')

const FROM = { file: 'w.worker', key: 'rules' }
const rule = (tokens: readonly string[], decision: Decision, match: Rule['match'] = 'prefix'): Rule => ({
  pattern: tokens.join(' '),
  tokens,
  match,
  decision,
  from: FROM,
})
const shellOf = (rules: readonly Rule[], standard?: Decision): Shell => ({
  rules,
  ...(standard && { default: { value: standard, from: FROM } }),
})

type Operator = Parameters<typeof compileRules>[1]

const compiled = (shell: Shell, approval: Approval, allowShellSyntax = false): readonly LaunchRecord[] =>
  compileRules(shell, { approval, allowShellSyntax }) ?? []

/** @returns the decider that lets it run by node's rules, empty where none does */
function whoLetsByNode(shell: Shell, one: Case, { approval, allowShellSyntax }: Operator): string {
  const verdict = typeof one === 'string' ? decideScript({ shell, script: one, allowShellSyntax }) : decide(shell, one)
  if (verdict.decision === 'ask' && approval === 'approve_all') return '--approval approve_all'
  return verdict.decision === 'run' ? verdict.by : ''
}

/** Text that the client judges alone: it is displayed as it is, no substitution runs in it, and no word of the shell's own hides a command. */
function isClients(one: Case, { allowShellSyntax }: Operator): boolean {
  if (typeof one !== 'string') return /^[ -~]+$/.test(one[0] ?? '')
  return allowShellSyntax && /^[ -~\n\t]*$/.test(one) && !/[$`(){}<>=]|if|exec/.test(one)
}

/** Numbers that are the same in each run of the tests. */
function numbers(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

const WORDS = [...'git|log|git|log|-x|a b||if|exec|A=b|g\u0456t|git\u200b|ü|x;y|"|\\'.split('|'), "'"]
const PIECES = [...WORDS, ...' @ @ @  @\t@\n@"@\'@\\@$x@`@|@&&@>@2>&1@>&@1@<@{@~@*@#@='.split('@')]
const DECISIONS: readonly Decision[] = ['run', 'ask', 'block']

interface Chance {
  readonly pick: <T>(from: readonly T[]) => T
  readonly some: <T>(most: number, make: () => T) => readonly T[]
}

function chanceOf(seed: number): Chance {
  const below = numbers(seed)
  return {
    pick: <T>(from: readonly T[]) => from[below(from.length)] as T,
    some: (most, make) => Array.from({ length: below(most + 1) }, make),
  }
}

const randomRule = ({ pick, some }: Chance): Rule =>
  rule(
    some(3, () => pick(WORDS)),
    pick(DECISIONS),
    pick(['prefix', 'exact']),
  )

function randomCase(chance: Chance): Case {
  const { pick, some } = chance
  const words = [pick(WORDS), ...some(3, () => pick(WORDS))]
  return pick<Case>([words, words, words.join(' '), some(9, () => pick(PIECES)).join('')])
}

describeWith('gcc', 'the client under a worker', () => {
  beforeAll(async () => {
    const { path, remove } = await newDirectory()
    built.file = join(path, 'f')
    return remove
  })

  test.each([...Array(12).keys()])(
    'lets run nothing that the rules do not let run, for the same reason: %i',
    async (seed) => {
      const chance = chanceOf(seed * 7919 + 1)
      const shell = shellOf(
        chance.some(5, () => randomRule(chance)),
        chance.pick([undefined, ...DECISIONS]),
      )
      const operator = {
        approval: chance.pick(['prompt', 'approve_all', 'reject_all'] as const),
        allowShellSyntax: chance.pick([true, false]),
      }
      const cases = Array.from({ length: 400 }, () => randomCase(chance))
      const answers = await whoLetsRun(compileRules(shell, operator) ?? [], cases)
      expect(answers).toHaveLength(cases.length)
      const said = cases.map((one, at) => ({ one, client: answers[at], node: whoLetsByNode(shell, one, operator) }))
      expect(said.filter(({ client, node }) => client !== '' && client !== node)).toEqual([])
      // A line that the client understands needs no node.
      expect(said.filter(({ one, client, node }) => isClients(one, operator) && client !== node)).toEqual([])
    },
  )

  test('judges texts with redirections as node does, or leaves them to it', async () => {
    const shell = shellOf(
      RULES.map(([tokens, decision]) => rule(tokens, decision)),
      'run',
    )
    const texts = SHELL_TEXTS.map(([text]) => text)
    const letRunHere = await letRun(compiled(shell, 'prompt', true), texts)
    expect(SHELL_TEXTS.filter(([, decision], at) => letRunHere[at] && decision !== 'run')).toEqual([])
    expect(texts.filter((_, at) => letRunHere[at])).toEqual([
      'git log 2>&1',
      'git log >&2',
      'git log 2>&-',
      'git log 2>&1 | wc -l',
    ])
  })

  const LETS: LaunchRecord = ['default', 'run', 'default']
  test.each<readonly [string, LaunchRecord[], boolean]>([
    ['no rules at all: a plan under no worker', [], true],
    ['a rule without a default', [['rule', 'run', 'prefix', 0, 'rule']], false],
    ['a rule with fewer words than it says', [LETS, ['rule', 'block', 'prefix', 2, 'rule'], ['token', 'x']], false],
    ['a word of no rule', [LETS, ['token', 'x']], false],
    ['a match that is none', [LETS, ['rule', 'block', 'suffix', 0, 'rule']], false],
    ['a number that is none', [LETS, ['rule', 'block', 'prefix', '-1', 'rule']], false],
    ['a decision that is none', [['default', 'maybe', 'default']], false],
    ['a default that lets run: the control', [LETS, ['rule', 'block', 'exact', 1, 'rule'], ['token', 'x']], true],
  ])('of %s', async (_, records, expected) => {
    expect(await letRun(records, [['git', 'log']])).toEqual([expected])
  })

  test('rules that words of a file cannot hold are not compiled', () => {
    const made = (token: string) =>
      compileRules(shellOf([rule([token], 'run')]), { approval: 'prompt', allowShellSyntax: false })
    for (const token of ['\ud800', 'a\0b']) expect(made(token)).toBeUndefined()
    expect(made('\u{1f600}')).toBeDefined()
  })
})
