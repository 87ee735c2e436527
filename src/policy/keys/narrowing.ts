/**
 * How a workshop or a worker may change one key of the operator's policy: rules that declarations of keys choose from. Pure.
 * worker/narrow.ts applies them.
 */

export interface Narrowing<Wanted, Granted = Wanted> {
  /** Wants more than was granted: refused, unless the level may set it. */
  readonly isWider: (wanted: Wanted, granted: Granted) => boolean
  /** The resulting value. `isFlagged`: the operator set it by flag or variable. */
  readonly takes: (wanted: Wanted, granted: Granted, isFlagged: boolean) => Granted
  readonly shows: (wanted: Wanted) => string
  readonly grants: (granted: Granted) => string
  /** `default`: a workshop may go beyond a value that no layer has set by name. `always`: beyond anything. */
  readonly sets?: 'default' | 'always'
  /** A flag that grants less than a workshop wants does not refuse the run: the operator has the last word. */
  readonly yields?: true
  /** Values of the levels add up, so they also apply when a flag sets the key. */
  readonly adds?: true
  /** Flags that would grant it; absent = the flag of the key. */
  readonly fix?: (wanted: Wanted) => string
}

/** A rule of any key, as a table of all keys holds it. */
export type AnyNarrowing = Omit<Narrowing<never, never>, 'takes'> & {
  readonly takes: (wanted: never, granted: never, isFlagged: boolean) => unknown
}

const shown = (value: unknown): string => String(value ?? 'nothing')

/** Where or how, not how much: free for every level to say, unless `isFree` denies it. */
export function chosen<Value>(
  isFree: (granted: Value | undefined) => boolean = () => true,
  sets?: 'default',
): Narrowing<Value> {
  return {
    isWider: (wanted, granted) => !isFree(granted) && granted !== wanted,
    takes: (wanted) => wanted,
    shows: shown,
    grants: shown,
    ...(sets === undefined ? {} : { sets }),
  }
}

/** Words that go from closed to open. */
export function ranked<const Value extends string | boolean>(
  order: readonly Value[],
  more: Pick<Narrowing<Value>, 'sets' | 'fix'> = {},
): Narrowing<Value> {
  return {
    isWider: (wanted, granted) => order.indexOf(wanted) > order.indexOf(granted),
    takes: (wanted) => wanted,
    shows: String,
    grants: String,
    ...more,
  }
}

/** A number that may only get smaller; null = no limit. */
export function atMost<Value extends number | null>(show: (value: number) => string): Narrowing<Value> {
  const shows = (value: number | null): string => (value === null ? 'no limit' : show(value))
  return {
    isWider: (wanted, granted) => granted !== null && (wanted === null || wanted > granted),
    takes: (wanted) => wanted,
    shows,
    grants: shows,
    sets: 'default',
    yields: true,
  }
}

/** A list that makes the sandbox stricter: every level adds to it. */
export function united<Element>(): Narrowing<readonly Element[]> {
  return {
    isWider: () => false,
    takes: (wanted, granted) => [...new Set([...granted, ...wanted])],
    shows: (wanted) => wanted.join(', '),
    grants: (granted) => granted.join(', '),
    adds: true,
  }
}

const joined = (values: readonly string[]): string => values.join(', ')

/** A list of things that are closed unless the operator opens them; nothing that is not open already can be added. */
export function opened(flag: string): Narrowing<readonly string[]> {
  return {
    isWider: (wanted, granted) => wanted.some((one) => !granted.includes(one)),
    takes: (_wanted, granted) => granted,
    shows: joined,
    grants: (granted) => joined(granted) || 'none',
    adds: true,
    fix: (wanted) => wanted.map((one) => `${flag} ${one}`).join(' '),
  }
}

/** Only the operator's: what a level says must be what holds anyway. */
export function operatorsOnly<Value>(absent: string): Narrowing<Value> {
  return {
    isWider: (wanted, granted) => wanted !== granted,
    takes: (_wanted, granted) => granted,
    shows: String,
    grants: (granted) => String(granted ?? absent),
  }
}
