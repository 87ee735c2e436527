/**
 * The rules of a worker as entries of a launch file, by which native/client/rules.c judges a command without node. Pure.
 */
import type { LaunchRecord } from '../backends/namespace/launch-file.ts'
import type { Approval } from './approval.ts'
import type { Decision, Shell } from './worker.ts'

/** @returns undefined for rules that words of a launch file cannot hold */
export function compileRules(shell: Shell, approval: Approval): readonly LaunchRecord[] | undefined {
  const answered = (decision: Decision): Decision =>
    decision === 'ask' && approval === 'approve_all' ? 'run' : decision
  const { rules } = shell
  if (!rules.every(({ tokens }) => tokens.every(isWord))) return undefined
  return [
    ['default', answered(shell.default?.value ?? 'block')],
    ...rules.flatMap(({ decision, match, tokens }): LaunchRecord[] => [
      ['rule', answered(decision), match, tokens.length],
      ...tokens.map((token): LaunchRecord => ['token', token]),
    ]),
  ]
}

/** Half a character would be written as another one. */
const isWord = (token: string): boolean => !token.includes('\0') && Buffer.from(token).toString() === token
