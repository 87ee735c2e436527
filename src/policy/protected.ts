/**
 * The names that are protected without being asked for: what a program of the host runs, or takes its orders from, without the user
 * asking for it. Data only; docs/profiles.md shows the table (a test compares the two).
 *
 * What a user starts on purpose is not here: Makefile, package.json, a script. Nor is what git needs to write in an ordinary commit
 * or checkout of another program's file. Directories of git are protected at every level of a zone and in their own way: GIT_NAMES.
 */

/** `zone`: at the root of every rw zone, and in home directories. `home`: only in home directories. */
export type ProtectedPlace = 'zone' | 'home'

export interface ProtectedName {
  /** Relative to the root of the zone, or to the home directory. */
  readonly name: string
  readonly where: ProtectedPlace
  /** What runs or obeys it. */
  readonly tool: string
  /** When, or what for. */
  readonly why: string
}

type Row = readonly [name: string, tool: string, why: string]

const IN_ZONES: readonly Row[] = [
  ['.mcp.json', 'coding agents', 'start the servers it names'],
  ['.vscode', 'Visual Studio Code', 'runs its tasks, uses the programs its settings name'],
  ['.idea', 'JetBrains editors', 'run its tasks and watchers'],
  ['.claude', 'Claude Code', 'runs its hooks, obeys its permissions and agents'],
  ['.codex', 'Codex', 'runs its hooks and servers, obeys its rules'],
  ['.agents', 'coding agents', 'obey its skills and run their scripts'],
  ['.envrc', 'direnv', 'runs it when a shell enters the directory'],
]

const IN_HOMES: readonly Row[] = [
  ['.bashrc', 'bash', 'runs it in each interactive shell'],
  ['.bash_profile', 'bash', 'runs it at login'],
  ['.bash_login', 'bash', 'runs it at login'],
  ['.bash_logout', 'bash', 'runs it at logout'],
  ['.bash_aliases', 'bash', 'runs it from the .bashrc of Debian'],
  ['.profile', 'login shells', 'run it at login'],
  ['.zshrc', 'zsh', 'runs it in each interactive shell'],
  ['.zprofile', 'zsh', 'runs it at login'],
  ['.zshenv', 'zsh', 'runs it at each start'],
  ['.zlogin', 'zsh', 'runs it at login'],
  ['.zlogout', 'zsh', 'runs it at logout'],
  ['.kshrc', 'ksh', 'runs it in each interactive shell'],
  ['.cshrc', 'csh', 'runs it at each start'],
  ['.tcshrc', 'tcsh', 'runs it at each start'],
  ['.login', 'csh', 'runs it at login'],
  ['.config/fish/config.fish', 'fish', 'runs it at each start'],
  ['.config/fish/conf.d', 'fish', 'runs all files of it at each start'],
]

const rows = (where: ProtectedPlace, table: readonly Row[]): readonly ProtectedName[] =>
  table.map(([name, tool, why]) => ({ name, where, tool, why }))

export const PROTECTED_NAMES: readonly ProtectedName[] = [...rows('zone', IN_ZONES), ...rows('home', IN_HOMES)]

/** Opens everything that is protected by a built-in name. */
export const EVERYTHING = '*'

/** The word that switches the protection of git directories off. */
export const GIT = '.git'

/**
 * What git runs, is led by, or takes its settings from, in a directory of its own; the rest of one (objects, refs, index, logs)
 * can be written. native/guard.c knows what each name means.
 */
export const GIT_NAMES = [
  'config',
  'config.worktree',
  'commondir',
  'hooks',
  'modules',
  'worktrees',
  'objects/info/alternates',
  'info/attributes',
] as const

/** The names as a Markdown table, for docs/profiles.md. */
export function protectedTable(): string {
  const rows = PROTECTED_NAMES.map(({ name, where, tool, why }) => `| \`${name}\` | ${where} | ${tool} | ${why} |`)
  return ['| name | where | program | why |', '| --- | --- | --- | --- |', ...rows].join('\n')
}

/** Every word of `protectNot`. */
export const OPENABLE_NAMES: readonly string[] = [
  ...PROTECTED_NAMES.map(({ name }) => name),
  GIT,
  ...GIT_NAMES.map((name) => `${GIT}/${name}`),
  EVERYTHING,
]
