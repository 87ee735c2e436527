/**
 * The options of the library's functions, looked at before anything is done: an unknown name or a value of another kind is a mistake of
 * the calling program. What the values of a policy mean is checked with the policy. Pure.
 */
import type { ErrorCode } from '../error.ts'
import { APPLY_CHOICES } from '../run/plan-run.ts'
import { didYouMean } from '../text/did-you-mean.ts'
import { isMapping } from '../text/json.ts'
import { quoteText, quoteValue } from '../text/units.ts'

/** A call that cannot be understood: a TypeError with the code OPTIONS_INVALID. Nothing has been done. */
export class OptionsError extends TypeError {
  readonly code = 'OPTIONS_INVALID' satisfies ErrorCode

  constructor(
    /** Everything that is wrong with the options, one line each. */
    readonly problems: readonly string[],
  ) {
    super(problems.join('\n'))
    this.name = 'OptionsError'
  }
}

/** Completes "expected ..."; undefined when the value is of that kind. */
type Kind = (value: unknown) => string | undefined

const kind =
  (expected: string, is: (value: unknown) => boolean): Kind =>
  (value) =>
    is(value) ? undefined : expected

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null
const isText = (value: unknown): value is string => typeof value === 'string'
const isTextOrNothing = (value: unknown): boolean => value === undefined || isText(value)
const isFunction = (value: unknown): boolean => typeof value === 'function'
const isBytes = (value: unknown): boolean => value instanceof Uint8Array
const isListOf = (value: unknown, is: (element: unknown) => boolean): boolean => Array.isArray(value) && value.every(is)
const isIterable = (value: unknown): boolean =>
  isObject(value) && (Symbol.asyncIterator in value || Symbol.iterator in value || 'getReader' in value)

const isSource = (value: unknown): boolean =>
  isObject(value) && ['take', 'progress', 'isCancelled', 'report'].every((name) => isFunction(Reflect.get(value, name)))

const text = kind('text', isText)
const call = kind('a function', isFunction)
const mapping = kind('an object', isMapping)
const variables = kind('an object of texts', (value) => isMapping(value) && Object.values(value).every(isTextOrNothing))
const signal = kind('an AbortSignal', (value) => isObject(value) && 'aborted' in value && 'addEventListener' in value)
const stdin = kind('text, bytes (Uint8Array), a stream or an iterable of them', (value) =>
  [isText, isBytes, isIterable].some((is) => is(value)),
)

/** A line of shell is the most frequent mistake: no shell splits words here, unless it is the command. */
const command: Kind = (value) => {
  if (isListOf(value, isText)) return undefined
  const words = 'a list of words such as ["ls", "-l"]'
  if (isText(value)) return `${words}; for a line of shell: ["sh", "-c", ${quoteText(value)}]`
  return Array.isArray(value) ? `${words}, each of them a text` : words
}

const POLICY = {
  policy: mapping,
  layers: kind('a list of policy layers', (value) => isListOf(value, isMapping)),
  profile: text,
  cwd: text,
  env: variables,
}

const COMMAND = { command, env: variables, signal }
const STREAMS = { stdin, onStdout: call, onStderr: call }

const SPAWN = {
  ...POLICY,
  ...COMMAND,
  commandBytes: kind('a list of bytes (Uint8Array)', (value) => isListOf(value, isBytes)),
  narrow: call,
  accept: call,
  apply: kind(
    `${APPLY_CHOICES.join(', ')} or a function`,
    (value) => isFunction(value) || APPLY_CHOICES.some((choice) => choice === value),
  ),
  cowContinue: text,
}

const EXECUTOR = {
  timeout: kind('milliseconds', (value) => typeof value === 'number'),
  memoryLimit: text,
  cpuLimit: kind('a number of cores', (value) => isText(value) || typeof value === 'number'),
  workspaceDir: text,
  env: variables,
  log: call,
}

/** Function of the library -> its options. */
const OPTIONS = {
  exec: {
    ...SPAWN,
    ...STREAMS,
    mode: kind('capture or inherit', (value) => value === 'capture' || value === 'inherit'),
  },
  spawn: SPAWN,
  doctor: { env: variables },
  openSandbox: {
    ...POLICY,
    warm: kind(
      'a whole number from 0 to 64',
      (value) => Number.isInteger(value) && Number(value) >= 0 && Number(value) <= 64,
    ),
  },
  serveTasks: {
    policy: POLICY.policy,
    layers: POLICY.layers,
    profile: text,
    env: variables,
    source: kind('an object with take, progress, isCancelled and report', isSource),
    slots: kind(
      'a whole number from 1 to 256',
      (value) => Number.isInteger(value) && Number(value) >= 1 && Number(value) <= 256,
    ),
    signal,
    end: signal,
    log: call,
  },
  'sandbox.exec': { ...COMMAND, ...STREAMS },
  'sandbox.spawn': COMMAND,
  'sandbox.run': {
    ...COMMAND,
    ...STREAMS,
    workdir: kind('an absolute path', (value) => isText(value) && value.startsWith('/')),
    timeout: kind(
      'a whole number of milliseconds, at least 1',
      (value) => Number.isInteger(value) && Number(value) >= 1 && Number(value) < 2 ** 31,
    ),
    keepState: kind("true, false or 'reset'", (value) => typeof value === 'boolean' || value === 'reset'),
  },
  SandboxExecutor: EXECUTOR,
  executeIn: { ...EXECUTOR, image: text, signal },
} satisfies Readonly<Record<string, Readonly<Record<string, Kind>>>>

/** Options without which a function has nothing to do. */
const REQUIRED = { command: 'a list of words', source: 'an object with take, progress, isCancelled and report' }

export type LibraryCall = keyof typeof OPTIONS

/**
 * @param name of the function, for messages
 * @throws OptionsError with all that is wrong
 */
export function checkOptions(of: LibraryCall, options: unknown, name: string = of): void {
  const kinds: Readonly<Record<string, Kind>> = OPTIONS[of]
  if (!isMapping(options))
    throw new OptionsError([`${name}: expected an object of options, got ${quoteValue(options)}.`])
  const given = Object.entries(options).filter(([, value]) => value !== undefined)
  const problems = given.flatMap(([key, value]) => problemOf(kinds, key, value))
  const missing = Object.entries(REQUIRED).filter(([key]) => key in kinds && !given.some(([name]) => name === key))
  const all = [...missing.map(([key, expected]) => `${key}: expected ${expected}, got nothing.`), ...problems]
  if (all.length > 0) throw new OptionsError(all.map((problem) => `${name}: ${problem}`))
}

function problemOf(kinds: Readonly<Record<string, Kind>>, key: string, value: unknown): readonly string[] {
  const known = Object.keys(kinds)
  const check = Object.hasOwn(kinds, key) ? kinds[key] : undefined
  if (check === undefined)
    return [`unknown option ${quoteText(key)}.${didYouMean(key, known) || ` Known: ${known.join(', ')}.`}`]
  const expected = check(value)
  return expected === undefined ? [] : [`${key}: expected ${expected}, got ${quoteValue(value)}.`]
}
