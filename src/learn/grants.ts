/** The grant that answers a refusal while a profile is learned: a zone, a host, more of a limit. Never a hole in a wall, never a secret. Pure. */

import type { PolicyLayer } from '../policy/layer.ts'
import { flagLayer, type GivenOptions } from '../policy/option-layer.ts'
import { OPTIONS } from '../policy/options.ts'
import type { Denial } from '../report/result.ts'

export interface Grant {
  /** The flag, as the denial names it. */
  readonly fix: string
  readonly layer: PolicyLayer
  /** The first refusal that it answers. */
  readonly because: Denial
}

/** Flags that show a directory, name a host or raise a limit. What opens a wall (`--seccomp`, `--protect-not`, `--socket`) is a person's to decide. */
const GRANTED = [
  'ro',
  'rw',
  'tmpfs',
  'same-path',
  'allow-host',
  'allow-local',
  'memory',
  'pids',
  'tmp',
  'run',
  'shm',
  'home',
]

/** @returns undefined where only a person may grant it */
export function grantFor(denial: Denial, directory: string): Grant | undefined {
  const given = givenBy(denial.fix)
  return (
    given && { fix: denial.fix, layer: { ...flagLayer(given, directory), source: 'llm-do learn' }, because: denial }
  )
}

const FIX = /^--([a-z-]+)(?: (.+))?$/s

function givenBy(fix: string): GivenOptions | undefined {
  const [, name = '', value] = FIX.exec(fix) ?? []
  const option = OPTIONS.find((one) => one.name === name)
  if (option === undefined || !GRANTED.includes(name) || value === 'PORT') return undefined
  const text = value === undefined ? true : unquoted(value)
  return { [name]: option.repeats === true ? [String(text)] : text }
}

/** The word that shellWord in report/hints.ts made one of. */
const unquoted = (word: string): string => (word.startsWith("'") ? word.slice(1, -1).replaceAll("'\\''", "'") : word)

const flagOf = ({ fix }: Pick<Grant, 'fix'>): string => fix.split(' ')[0] ?? ''
const isRepeated = ({ fix }: Pick<Grant, 'fix'>): boolean =>
  OPTIONS.some(({ name, repeats }) => `--${name}` === flagOf({ fix }) && repeats === true)

/** Grants and one more: of a limit the last one counts, and so does writing where reading was granted before. */
export function withGrant(grants: readonly Grant[], more: Grant): readonly Grant[] {
  const isReplaced = (one: Grant): boolean =>
    isRepeated(one) ? one.fix === more.fix.replace(/^--rw /, '--ro ') : flagOf(one) === flagOf(more)
  return [...grants.filter((one) => !isReplaced(one)), more]
}
