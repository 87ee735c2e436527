/** Keys about the walls themselves: the system call filter, protected paths, what must be enforced. */
import { type Reader, understood } from '../../text/units.ts'
import { resolveHostPath } from '../layer-source.ts'
import { EVERYTHING, OPENABLE_NAMES } from '../protected.ts'
import { oneOf, readHidePattern, readHostPath, readRelativePath } from '../readers.ts'
import { NEEDS, type Need, type SeccompChoice, seccompName } from '../values.ts'
import { list, scalar, toggle, unite, word } from './key.ts'
import { type Narrowing, opened, ranked, united } from './narrowing.ts'

/** A word of the built-in filters, or the path of a filter file (recognised by its slash or `.json`). */
const readSeccomp: Reader<SeccompChoice> = (value) => {
  const isFile = typeof value === 'string' && (value.includes('/') || value.endsWith('.json'))
  if (isFile) {
    const reading = readHostPath(value)
    return reading.ok ? understood({ file: reading.value }) : reading
  }
  const reading = oneOf(['default', 'strict', 'nested', 'off'])(value)
  return reading.ok ? reading : { ...reading, expected: `${reading.expected}, or the path of a filter file` }
}

const showSeccomp = (seccomp: SeccompChoice): string => seccompName({ seccomp })

const SECCOMP_ORDER: readonly SeccompChoice[] = ['strict', 'default', 'nested', 'off']

/** Two files cannot be compared: only the very same file counts as narrower or equal. */
const narrowSeccomp: Narrowing<SeccompChoice> = {
  isWider: (wanted, granted) =>
    typeof wanted === 'object' || typeof granted === 'object'
      ? showSeccomp(wanted) !== showSeccomp(granted)
      : SECCOMP_ORDER.indexOf(wanted) > SECCOMP_ORDER.indexOf(granted),
  takes: (wanted) => wanted,
  shows: showSeccomp,
  grants: showSeccomp,
}

const choice = scalar<string, SeccompChoice>(readSeccomp, {
  description: 'System call filter: default, strict, nested (allows sandboxes inside), off, or a file.',
  unit: 'word or path',
  examples: ['strict', './filter.json'],
  type: 'string',
  default: 'default',
  flag: { name: 'seccomp', argument: 'default|strict|nested|off|FILE', group: 'Backend' },
  narrowing: narrowSeccomp,
  need: (value) => (value === 'off' ? undefined : 'seccomp'),
})

export const seccomp: typeof choice = {
  ...choice,
  merging: {
    ...choice.merging,
    resolve: (parsed: SeccompChoice, source) =>
      typeof parsed === 'string' ? parsed : { file: resolveHostPath(parsed.file, source) },
  },
}

export const toolchains = word(['auto', 'off'], {
  description:
    'auto shows the installation of a tool outside /usr (nvm, pyenv, cargo...) read-only when the command needs it.',
  default: 'auto',
  flag: { name: 'toolchains', argument: 'auto|off', group: 'Files', isRare: true },
  narrowing: ranked(['off', 'auto']),
})

export const selfInside = toggle({
  description: 'llm-do itself is shown read-only and on PATH, for runs inside that have less; with toolchains auto.',
  flag: { name: 'self-inside', group: 'Backend', isRare: true },
})

/** An empty list once took the built-in names away. */
const narrowProtect: Narrowing<readonly string[]> = {
  ...united(),
  isWider: (wanted) => wanted.length === 0,
  shows: (wanted) => (wanted.length === 0 ? 'no protected paths' : wanted.join(', ')),
  grants: (granted) => `${granted.length} protected paths`,
}

export const protect = list<string>(readRelativePath, {
  description: 'More paths that stay read-only inside rw zones, in addition to the built-in names.',
  unit: 'list of paths',
  flag: {
    name: 'protect',
    isRare: true,
    argument: 'PATH',
    group: 'Files',
    repeats: true,
    help: 'A path in rw zones that stays read-only, in addition to the built-in names.',
  },
  narrowing: narrowProtect,
})

/** Takes the patterns of the layers below away; a file of that name is `[n]one`. */
const HIDES_NOTHING = 'none'

const withoutNone = (patterns: readonly string[]): readonly string[] =>
  patterns.slice(patterns.lastIndexOf(HIDES_NOTHING) + 1)

const narrowHide: Narrowing<readonly string[]> = {
  ...united(),
  isWider: (wanted, granted) => wanted.includes(HIDES_NOTHING) && granted.length > 0,
  takes: (wanted, granted) => [...new Set([...granted, ...withoutNone(wanted)])],
}

const hidden = list<string>(readHidePattern, {
  description:
    'Files and directories that the command finds empty and read-only in zones: names, or the last names of a path; none: those of lower layers are shown.',
  unit: 'list of patterns',
  examples: [['.env*', 'secrets/']],
  flag: {
    name: 'hide',
    argument: 'PATTERN',
    group: 'Files',
    repeats: true,
    help: 'What the command finds empty; in zones, at any depth and in any case: .env*, secrets/, config/key; none: nothing that a profile hides.',
  },
  narrowing: narrowHide,
})

export const hide: typeof hidden = {
  ...hidden,
  merging: {
    add: (below: readonly string[] | undefined, above: readonly string[]) =>
      above.includes(HIDES_NOTHING) ? above : unite(below, above),
    finish: withoutNone,
  },
}

/** A name of the built-in list; the slash at the end of a directory is taken away. */
const readOpenable: Reader<string> = (value) => {
  const name = typeof value === 'string' && value.length > 1 ? value.replace(/^\.\//, '').replace(/\/$/, '') : value
  const reading = oneOf(OPENABLE_NAMES)(name)
  return reading.ok
    ? reading
    : { ...reading, expected: 'a name of the built-in list of protected names, .git, PATH or *' }
}

export const protectNot = list<string>(readOpenable, {
  description: 'Built-in protected names that may be written all the same; .git: git directories, *: every name.',
  unit: 'list of names',
  examples: [['.git']],
  flag: {
    name: 'protect-not',
    argument: 'NAME',
    group: 'Files',
    repeats: true,
    help: 'Let a built-in protected name be written in rw zones; .git: git directories, *: every name.',
  },
  narrowing: {
    ...opened('--protect-not'),
    isWider: (wanted, granted) => !granted.includes(EVERYTHING) && wanted.some((name) => !granted.includes(name)),
  },
})

/** `cpu-limit` was once the name of `cpus-limit`. */
const readNeed: Reader<Need> = (value) => oneOf(NEEDS)(value === 'cpu-limit' ? 'cpus-limit' : value)

export const requireNeeds = list<Need>(readNeed, {
  description: 'Needs that the kernel itself must enforce, or the run is refused.',
  unit: 'list of words',
  examples: [['memory-limit', 'pids-limit']],
  flag: {
    name: 'require',
    isRare: true,
    argument: 'WORD,...',
    group: 'Policy',
    repeats: 'split',
  },
})

export const bestEffort = toggle({
  description: 'Run although a limit cannot be held at all; the result says which.',
  flag: { name: 'best-effort', isRare: true, group: 'Policy' },
})
