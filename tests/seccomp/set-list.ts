/** The list of docs/internals/seccomp.md that is made from the rules. */

import { keptSets, setsWithoutNamespaces } from '../../src/seccomp/filter.ts'
import {
  PROFILE_NAMES,
  PROFILES,
  type Refusal,
  type RuleSet,
  SETS,
  type SetName,
  type Test,
} from '../../src/seccomp/rules.ts'
import { listItem } from '../support/generated.ts'

const hex = (value: number): string => (value < 256 ? String(value) : `0x${value.toString(16)}`)

function phrase(test: Test): string {
  const operand = `argument ${test.argument + 1}${test.half === 'high' ? ' (high half)' : ''}`
  if ('anyBit' in test) return `${operand} has a bit of 0x${test.anyBit.toString(16)}`
  const subject = test.mask === undefined ? operand : `${operand} & 0x${test.mask.toString(16)}`
  return 'among' in test
    ? `${subject} is ${test.among.map(hex).join(' or ')}`
    : `${subject} is not ${test.notAmong.map(hex).join(', ')}`
}

function sentence({ names, errno, when }: Refusal): string {
  const calls = names.map((name) => `\`${name}\``).join(' ')
  return when === undefined ? `${calls}: ${errno}` : `${calls}: ${errno} when ${when.map(phrase).join(' and ')}`
}

/** The profiles, and what is kept under every filter. */
const FILTERS: readonly (readonly [string, readonly SetName[]])[] = [
  ...PROFILE_NAMES.map((profile) => [profile, PROFILES[profile].sets] as const),
  ['always', keptSets({ isRoot: false })],
  ['always for root', keptSets({ isRoot: true })],
  ['without namespaces', setsWithoutNamespaces({ hasNetwork: false })],
]

function item(name: SetName): string {
  const { why, refusals }: RuleSet = SETS[name]
  const filters = FILTERS.flatMap(([filter, sets]) => (sets.includes(name) ? [filter] : []))
  return listItem(`**${name}** (${filters.join(', ')}): ${why} ${refusals.map(sentence).join('; ')}.`)
}

/** A Markdown list: every set, the filters that have it, why, and what it refuses with which error. */
export const setList = (): string => (Object.keys(SETS) as SetName[]).map(item).join('\n')
