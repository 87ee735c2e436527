/**
 * The rules of a worker as entries of a launch file, by which native/client/rules.c judges a command without node. Pure.
 */
import type { LaunchRecord } from '../backends/namespace/launch-file.ts'
import { type Approval, answeredBy } from './approval.ts'
import { DEFAULT, nameOf } from './rules.ts'
import type { Decision, Shell } from './worker.ts'

interface Operator {
  readonly approval: Approval
  readonly allowShellSyntax: boolean
}

/** @returns undefined for rules that words of a launch file cannot hold */
export function compileRules(
  shell: Shell,
  { approval, allowShellSyntax }: Operator,
): readonly LaunchRecord[] | undefined {
  const answer = approval === 'approve_all' ? answeredBy(approval) : ''
  const answered = (decision: Decision, by: string): readonly [Decision, string] =>
    decision === 'ask' && answer !== '' ? ['run', answer] : [decision, by]
  const { rules } = shell
  if (!rules.every(({ tokens }) => tokens.every(isWord))) return undefined
  return [
    ...(allowShellSyntax ? [['syntax', answer] satisfies LaunchRecord] : []),
    ['default', ...answered(shell.default?.value ?? 'block', DEFAULT)],
    ...rules.flatMap((rule): LaunchRecord[] => {
      const [decision, by] = answered(rule.decision, nameOf(rule))
      const tokens = rule.tokens.map((token): LaunchRecord => ['token', token])
      return [['rule', decision, rule.match, tokens.length, by], ...tokens]
    }),
  ]
}

/** Half a character would be written as another one. */
const isWord = (token: string): boolean => !token.includes('\0') && Buffer.from(token).toString() === token
