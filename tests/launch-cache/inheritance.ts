/** The variables that `env.inherit` takes over, for each of the three that do it: the plan, the library's warm runs, the client. */
export interface Inheritance {
  readonly inherit: readonly string[]
  /** Variables of the caller. */
  readonly caller: Readonly<Record<string, string>>
  /** Names that arrive. */
  readonly taken: readonly string[]
}

const CALLER = {
  CI: '1',
  CI_JOB_TOKEN: 'secret',
  CIRCLE: 'o',
  XCI: 'x',
  ci: 'small',
  LD_PRELOAD: '/x.so',
  LD_PRELOAD_X: 'x',
  LD_: 'short',
  EMPTY: '',
  'A*': 'star',
  A: 'a',
  AB: 'ab',
  LINES: 'one\nCI_JOB_TOKEN=two',
} as const

export const INHERITANCE: readonly Inheritance[] = [
  { inherit: [], caller: CALLER, taken: [] },
  { inherit: ['CI'], caller: CALLER, taken: ['CI'] },
  { inherit: ['C'], caller: CALLER, taken: [] },
  { inherit: ['CI_'], caller: CALLER, taken: [] },
  { inherit: ['CI_JOB_TOKEN_X'], caller: CALLER, taken: [] },
  { inherit: ['CI_*'], caller: CALLER, taken: ['CI_JOB_TOKEN'] },
  { inherit: ['CI*'], caller: CALLER, taken: ['CI', 'CI_JOB_TOKEN', 'CIRCLE'] },
  { inherit: ['LD_PRELOAD'], caller: CALLER, taken: ['LD_PRELOAD'] },
  { inherit: ['LD_*'], caller: CALLER, taken: ['LD_PRELOAD', 'LD_PRELOAD_X', 'LD_'] },
  { inherit: ['EMPTY', 'MISSING', 'constructor', '__proto__'], caller: CALLER, taken: ['EMPTY'] },
  { inherit: ['A*'], caller: CALLER, taken: ['A*', 'A', 'AB'] },
  { inherit: ['A', 'XCI'], caller: CALLER, taken: ['A', 'XCI'] },
  { inherit: ['LINES', 'CI'], caller: CALLER, taken: ['LINES', 'CI'] },
  { inherit: ['*I'], caller: CALLER, taken: [] },
  { inherit: ['?I', 'C[I]', '.*'], caller: CALLER, taken: [] },
  { inherit: ['*'], caller: CALLER, taken: Object.keys(CALLER) },
]

/** The variables that arrive, of those that the caller has. */
export const expectedOf = ({ caller, taken }: Inheritance): Readonly<Record<string, string>> =>
  Object.fromEntries(taken.map((name) => [name, caller[name] ?? '']))

export const arrived = (
  environment: Readonly<Record<string, string>>,
  { caller }: Inheritance,
): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(environment).filter(([name]) => Object.hasOwn(caller, name)))
