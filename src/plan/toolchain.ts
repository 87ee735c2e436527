/**
 * Toolchains that live outside /usr: which installation prefix must be visible so that a program of the caller's PATH runs.
 * Pure. One table of kinds; a kind is recognised by the words of the canonical path, wherever its base directory is.
 */
import { posix } from 'node:path'
import { isWritable } from '../policy/values.ts'
import { shellWord } from '../text/shell-word.ts'
import { type PathFacts, pathFact } from './mounts.ts'
import type { PlannedZone } from './plan.ts'
import type { Request } from './request.ts'
import {
  closedTarget,
  holdsCredentials,
  isBelow,
  isWithin,
  SANDBOX_HOME,
  searchPath,
  shown,
  withheldWorkspace,
} from './well-known-paths.ts'

export interface ToolchainKind {
  readonly name: string
  /**
   * Words that a canonical path must contain one after the other; `*` is any one word. The match is the toolchain's prefix, what is
   * before it the base. A pattern that starts with `/` must match from the root.
   */
  readonly pattern: string
  /** Mounts relative to the base; absent = the prefix itself. Missing ones are left out. */
  readonly shows?: readonly string[]
  /** Paths relative to the prefix whose own links lead to another toolchain (the interpreter of a virtual environment). */
  readonly leads?: readonly string[]
  /** Variables without which it does not find itself. `{base}` and `{prefix}` are replaced. */
  readonly env?: Readonly<Record<string, string>>
}

/** Specific before general: the first kind that matches wins. */
export const TOOLCHAINS: readonly ToolchainKind[] = [
  { name: 'nvm', pattern: '.nvm/versions/*/*' },
  { name: 'fnm', pattern: 'fnm/node-versions/*' },
  { name: 'volta', pattern: '.volta', env: { VOLTA_HOME: '{prefix}' } },
  { name: 'pyenv', pattern: '.pyenv', env: { PYENV_ROOT: '{prefix}' } },
  { name: 'rbenv', pattern: '.rbenv', env: { RBENV_ROOT: '{prefix}' } },
  { name: 'nodenv', pattern: '.nodenv', env: { NODENV_ROOT: '{prefix}' } },
  { name: 'goenv', pattern: '.goenv', env: { GOENV_ROOT: '{prefix}' } },
  { name: 'jenv', pattern: '.jenv', env: { JENV_ROOT: '{prefix}' } },
  { name: 'asdf', pattern: '.asdf', env: { ASDF_DIR: '{prefix}', ASDF_DATA_DIR: '{prefix}' } },
  { name: 'mise', pattern: '.local/share/mise/installs/*/*' },
  // ~/.cargo itself may hold credentials.toml, the key to publish packages: only its programs are shown.
  {
    name: 'cargo',
    pattern: '.cargo/bin',
    shows: ['.cargo/bin', '.rustup'],
    env: { RUSTUP_HOME: '{base}/.rustup', CARGO_HOME: `${SANDBOX_HOME}/.cargo` },
  },
  { name: 'rustup', pattern: '.rustup', env: { RUSTUP_HOME: '{prefix}', CARGO_HOME: `${SANDBOX_HOME}/.cargo` } },
  { name: 'sdkman', pattern: '.sdkman/candidates/*/*' },
  { name: 'jdks', pattern: '.jdks/*' },
  ...['miniconda3', 'anaconda3', 'miniforge3', 'mambaforge', 'micromamba', 'miniconda', 'anaconda'].map((pattern) => ({
    name: 'conda',
    pattern,
  })),
  { name: 'conda', pattern: '.conda/envs/*' },
  { name: 'pipx', pattern: '.local/share/pipx/venvs/*', leads: ['bin/python'] },
  { name: 'pipx', pattern: '.local/pipx/venvs/*', leads: ['bin/python'] },
  { name: 'uv', pattern: '.local/share/uv/tools/*', leads: ['bin/python'] },
  { name: 'uv', pattern: '.local/share/uv/python/*' },
  { name: 'rye', pattern: '.rye' },
  { name: 'pixi', pattern: '.pixi' },
  { name: 'poetry', pattern: '.local/share/pypoetry/venv', leads: ['bin/python'] },
  { name: 'opt', pattern: '/opt/*' },
  { name: 'go', pattern: 'sdk/go*' },
  { name: 'go', pattern: '.local/go' },
  // The programs of a GOPATH. Its module cache is left out: the sandbox has another one.
  { name: 'go', pattern: 'go/bin' },
  { name: 'deno', pattern: '.deno/bin' },
  { name: 'bun', pattern: '.bun/bin', shows: ['.bun/bin', '.bun/install/global'] },
  { name: 'npm', pattern: '.npm-global', shows: ['.npm-global/bin', '.npm-global/lib'] },
  { name: 'pnpm', pattern: '.local/share/pnpm' },
  { name: 'yarn', pattern: '.yarn/bin' },
  { name: 'ghcup', pattern: '.ghcup' },
  { name: 'opam', pattern: '.opam' },
  { name: 'juliaup', pattern: '.juliaup', shows: ['.juliaup', '.julia/juliaup'] },
  { name: 'dotnet', pattern: '.dotnet', env: { DOTNET_ROOT: '{prefix}' } },
  { name: 'nimble', pattern: '.nimble/bin' },
  { name: 'gem', pattern: '.gem/ruby/*' },
  { name: 'gem', pattern: '.local/share/gem/ruby/*' },
  { name: 'homebrew', pattern: '.linuxbrew' },
  { name: 'nix', pattern: '/nix/store' },
  { name: 'local', pattern: '.local/bin' },
  // Visible anyway (images with Rust have it there), but lost without its variable.
  {
    name: 'rust-image',
    pattern: '/usr/local/cargo/bin',
    shows: [],
    env: { RUSTUP_HOME: '/usr/local/rustup', CARGO_HOME: `${SANDBOX_HOME}/.cargo` },
  },
]

export interface FoundToolchain {
  readonly kind: ToolchainKind
  readonly base: string
  readonly prefix: string
  /** Absolute paths that are to be shown, existing or not. */
  readonly shows: readonly string[]
}

interface Pattern {
  readonly kind: ToolchainKind
  readonly wanted: readonly string[]
  readonly rooted: boolean
  /** Place in the table. */
  readonly rank: number
}

/** The table by the first word of its patterns, which is a whole word in each: most words of a PATH begin none. */
const BEGUN_BY = byFirstWord(
  TOOLCHAINS.map((kind, rank) => ({
    kind,
    wanted: wordsOf(kind.pattern),
    rooted: kind.pattern.startsWith('/'),
    rank,
  })),
)

function byFirstWord(patterns: readonly Pattern[]): ReadonlyMap<string, readonly Pattern[]> {
  const found = new Map<string, Pattern[]>()
  for (const pattern of patterns) {
    const [first = ''] = pattern.wanted
    found.set(first, [...(found.get(first) ?? []), pattern])
  }
  return found
}

/** The toolchain that a path belongs to, if it is a known one. */
export function toolchainAt(path: string): FoundToolchain | undefined {
  const words = wordsOf(path)
  const matches = words.flatMap((_, start) => patternsAt(words, start).map((pattern) => ({ ...pattern, start })))
  const [first] = matches.sort((a, b) => a.rank - b.rank)
  if (first === undefined) return undefined
  const { kind, wanted, start } = first
  const base = `/${words.slice(0, start).join('/')}`
  const prefix = `/${words.slice(0, start + wanted.length).join('/')}`
  return { kind, base, prefix, shows: kind.shows?.map((name) => posix.join(base, name)) ?? [prefix] }
}

function patternsAt(words: readonly string[], start: number): readonly Pattern[] {
  const begun = BEGUN_BY.get(words[start] ?? '') ?? []
  return begun.filter(
    ({ wanted, rooted }) => !(rooted && start > 0) && wanted.every((word, index) => fits(word, words[start + index])),
  )
}

function wordsOf(path: string): readonly string[] {
  return path.split('/').filter(Boolean)
}

function fits(wanted: string, word: string | undefined): boolean {
  if (word === undefined) return false
  return wanted.endsWith('*') ? word.startsWith(wanted.slice(0, -1)) : word === wanted
}

/** Absolute paths where the command may be, in the caller's order; a command with a slash is one path. */
export function commandCandidates({ command, cwd, path }: Request): readonly string[] {
  const name = command[0] ?? ''
  if (name === '' || name.includes('\0')) return []
  if (name.includes('/')) return [posix.resolve(cwd, name)]
  return searchPath(path).map((directory) => posix.join(directory, name))
}

/** The first place of the command that is a file, as the caller's shell would find it. */
export function foundCommand(request: Request, paths: PathFacts): string | undefined {
  return commandCandidates(request).find((candidate) => pathFact(paths, candidate).kind === 'file')
}

/** Managers of interpreters: what they install is public software. */
const INTERPRETERS: ReadonlySet<string> = new Set([
  'nvm',
  'fnm',
  'pyenv',
  'rbenv',
  'nodenv',
  'goenv',
  'asdf',
  'mise',
  'uv',
])

/** The one exception for links of a project: the interpreter of a virtual environment, in its usual place in the caller's home. */
function isInterpreter(path: string, home: string): boolean {
  const found = toolchainAt(path)
  return found !== undefined && INTERPRETERS.has(found.kind.name) && found.base === home
}

/** Everything whose toolchain matters: the canonical paths of PATH entries and of the command, and where their links lead. */
function tracks(request: Request, paths: PathFacts, writable: readonly string[] = []): readonly string[] {
  const command = foundCommand(request, paths)
  const seen = [...searchPath(request.path), ...(command === undefined ? [] : [command])].filter((path) =>
    ['file', 'directory'].includes(pathFact(paths, path).kind),
  )
  // The name under which a thing is called may belong to another toolchain than its target: a shim of volta, a link of pipx.
  // A link in the caller's directory or in a writable zone may be the work of an earlier command, and shows nothing outside.
  const closed = [...(withheldWorkspace(request.cwd, request.home) === undefined ? [request.cwd] : []), ...writable]
  const leaves = (path: string, to: string): boolean =>
    !isInterpreter(to, request.home) &&
    closed.some((base) => [path, realPathOf(paths, path)].some((from) => isWithin(from, base)) && !isWithin(to, base))
  const direct = seen.flatMap((path) =>
    [realPathOf(paths, path), pathFact(paths, path).real].filter((to) => !leaves(path, to)),
  )
  const led = direct.flatMap(leadsOf).flatMap((path) => (paths[path] === undefined ? [] : [pathFact(paths, path).real]))
  return [...new Set([...direct, ...led])]
}

/** Canonical place of the name itself, its own link not followed. */
function realPathOf(paths: PathFacts, path: string): string {
  const { link, real } = pathFact(paths, path)
  const parent = paths[posix.dirname(path)]
  return link === undefined ? real : parent === undefined ? path : posix.join(parent.real, posix.basename(path))
}

/** The canonical paths by which a program can belong to a toolchain: that of its name, and where its links lead. */
export function pathsOfProgram(found: string, paths: PathFacts): readonly string[] {
  return [realPathOf(paths, found), pathFact(paths, found).real]
}

/** The interpreter of a virtual environment that a path belongs to. */
function leadsOf(path: string): readonly string[] {
  const found = toolchainAt(path)
  return (found?.kind.leads ?? []).map((lead) => posix.join(found?.prefix ?? '/', lead))
}

/** Questions that follow from the first answers: prefixes to mount, and interpreters of virtual environments. */
export function toolchainQuestions(request: Request, paths: PathFacts): readonly string[] {
  const called = searchPath(request.path).flatMap((path) => toolchainAt(path)?.prefix ?? [])
  const behind = tracks(request, paths).flatMap((path) => {
    const leads = leadsOf(path)
    return [...(toolchainAt(path)?.shows ?? []), ...leads, ...leads.map((lead) => toolchainAt(lead)?.prefix ?? lead)]
  })
  return [...called, ...behind, ...ownQuestions(request)]
}

const OWN_COMMAND = 'bin/llm-do'

const ownQuestions = ({ ownPrograms = [] }: Request): readonly string[] =>
  ownPrograms.flatMap((path) => [path, posix.join(path, OWN_COMMAND)])

/** Directories that hold our own command, where the policy wants it inside. */
export const ownDirectories = ({ ownPrograms = [] }: Request, paths: PathFacts): readonly string[] =>
  ownPrograms
    .map((path) => posix.join(path, OWN_COMMAND))
    .flatMap((command) => (paths[command]?.kind === 'file' ? [posix.dirname(paths[command].real)] : []))

export interface ToolchainInputs {
  readonly request: Request
  readonly paths: PathFacts
  readonly zones: readonly PlannedZone[]
}

export interface Toolchains {
  readonly zones: readonly PlannedZone[]
  /** Variables that the toolchains need. */
  readonly env: Readonly<Record<string, string>>
  /** Names under which a toolchain was called when its canonical place is another one. */
  readonly links: Readonly<Record<string, string>>
}

/** Toolchains to add read-only; a directory that holds credentials is never among them. */
export function resolveToolchains(inputs: ToolchainInputs): Toolchains {
  const { request, paths } = inputs
  const writable = inputs.zones.flatMap(({ mode, source }) => (isWritable(mode) ? [source] : []))
  const found = tracks(request, paths, writable).flatMap((path) => toolchainAt(path) ?? [])
  const own = (request.ownPrograms ?? []).map((path) => ({ name: 'llm-do', path: paths[path]?.real ?? path }))
  const tools = found.flatMap(({ kind, shows: list }) => list.map((path) => ({ name: kind.name, path })))
  const shows = outermost([...own, ...tools])
  const wanted = shows.filter(({ path }) => canBeShown(path, inputs))
  const zones = wanted.map(({ name, path }) => toolchainZone(name, path, paths))
  const used = found.filter(
    ({ shows: [own] }) => own === undefined || zones.some(({ target }) => isWithin(own, target)),
  )
  return {
    zones: numbered(zones),
    env: Object.assign({}, ...[...used].reverse().map(variablesOf)) as Record<string, string>,
    links: linksTo(zones, inputs),
  }
}

interface Show {
  readonly name: string
  readonly path: string
}

/** A prefix inside another mounted one needs no second mount. */
function outermost(shows: readonly Show[]): readonly Show[] {
  const first = shows.filter(({ path }, index) => shows.findIndex((other) => other.path === path) === index)
  return first.filter(({ path }) => !first.some((other) => isBelow(path, other.path)))
}

function canBeShown(path: string, { request, paths, zones }: ToolchainInputs): boolean {
  const fact = paths[path]
  if (fact === undefined || fact.kind !== 'directory') return false
  if (isWithin(fact.real, '/usr') || holdsCredentials(fact.real, request.home)) return false
  // A zone at, above or below it is the user's own decision about this place.
  return !zones.some(({ target }) => isWithin(fact.real, target) || isBelow(target, fact.real))
}

function toolchainZone(name: string, path: string, paths: PathFacts): PlannedZone {
  const { real, dev, ino, uid, gid } = pathFact(paths, path)
  return {
    name,
    mode: 'ro',
    source: real,
    target: real,
    kind: 'directory',
    dev,
    ino,
    uid,
    gid,
    create: false,
    sockets: false,
    protect: [],
    from: `toolchain ${name}`,
  }
}

/** Names are unique in a plan: `nvm`, `nvm-2`. */
function numbered(zones: readonly PlannedZone[]): readonly PlannedZone[] {
  return zones.map((zone, index) => {
    const before = zones.slice(0, index).filter(({ name }) => name === zone.name).length
    return { ...zone, name: before === 0 ? `toolchain-${zone.name}` : `toolchain-${zone.name}-${before + 1}` }
  })
}

function variablesOf({ kind, base, prefix }: FoundToolchain): Readonly<Record<string, string>> {
  const entries = Object.entries(kind.env ?? {})
  return Object.fromEntries(
    entries.map(([name, text]) => [name, text.replace('{base}', base === '/' ? '' : base).replace('{prefix}', prefix)]),
  )
}

/** /home/ann/.pyenv when /home is a link to /data/home: scripts inside name it by the first, it is mounted at the second. */
function linksTo(zones: readonly PlannedZone[], { request, paths }: ToolchainInputs): Readonly<Record<string, string>> {
  const calls = searchPath(request.path).flatMap((path) => toolchainAt(path)?.prefix ?? [])
  return Object.fromEntries(
    calls.flatMap((prefix) => {
      const real = paths[prefix]?.real
      return real !== undefined && real !== prefix && zones.some(({ target }) => isWithin(real, target))
        ? [[prefix, real]]
        : []
    }),
  )
}

/** Where a host path appears inside, or undefined when no zone shows it. The innermost zone counts. */
export function insideOf(path: string, zones: readonly PlannedZone[]): string | undefined {
  const holding = zones
    .filter(({ source }) => isWithin(path, source))
    .sort((a, b) => b.source.length - a.source.length)[0]
  return holding === undefined ? undefined : posix.join(holding.target, posix.relative(holding.source, path))
}

/** One line when the caller's shell would find the command in a place that the sandbox does not show. */
export function hiddenCommand({ request, paths, zones }: ToolchainInputs): readonly string[] {
  const program = foundCommand(request, paths)
  if (program === undefined || isVisible(pathFact(paths, program).real, zones)) return []
  // That the caller's own directory is not shown is said once, where that is decided.
  if ((request.command[0] ?? '').startsWith('.') && !isVisible(realPathOf(paths, program), zones)) return []
  const flags = installationsOf(program, { request, paths, zones }).map(
    (directory) => `--ro ${shown(shellWord(directory))}`,
  )
  return flags.length === 0 ? [] : [`${shown(program)} is not visible inside; to show it: ${flags.join(' ')}`]
}

function isVisible(path: string, zones: readonly PlannedZone[]): boolean {
  return ['/usr', '/bin', '/sbin'].some((root) => isWithin(path, root)) || insideOf(path, zones) !== undefined
}

/** The directories to show so that a program starts: those of its name, of what its link says, and of the file behind, where they are hidden. */
export function installationsOf(program: string, { request, paths, zones }: ToolchainInputs): readonly string[] {
  const name = realPathOf(paths, program)
  const { link, real } = pathFact(paths, program)
  const led = link === undefined ? [] : [posix.resolve(posix.dirname(name), link)]
  const hidden = [name, ...led, real].filter((path) => !isVisible(path, zones))
  const wanted = [...new Set(hidden.map((path) => installationOf(posix.dirname(path), request.home)))]
  return wanted.filter((path) => !wanted.some((other) => isBelow(path, other)))
}

/** Beside `bin` lies what its programs need: the library of a python, the modules of a package. */
function installationOf(directory: string, home: string): string {
  const parent = posix.dirname(directory)
  const isShowable = !holdsCredentials(parent, home) && closedTarget(parent) === undefined
  return ['bin', 'sbin'].includes(posix.basename(directory)) && isShowable ? parent : directory
}
