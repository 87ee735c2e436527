/** Questions about absolute POSIX paths, and the tables of paths with a special meaning. Pure; nothing is looked at. */
import { posix } from 'node:path'

export { neutralise as shown } from '../text/invisible.ts'

export const WORKSPACE = '/workspace'
export const SANDBOX_HOME = '/home/sandbox'

/** Directories of programs and libraries at the host's root: shown as the host has them, see system-tree.ts. */
export const RUNTIME_ROOTS = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32'] as const

/** Where programs are looked for inside when the caller's PATH names none of them. */
export const STANDARD_PATH = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'] as const

/** The innermost mount around a path inside. */
export function around<T extends { readonly target: string }>(path: string, mounts: readonly T[]): T | undefined {
  const outer = mounts.filter(({ target }) => isWithin(path, target))
  return outer.toSorted((one, other) => other.target.length - one.target.length)[0]
}

/** True for `ancestor` itself and everything under it. */
export function isWithin(path: string, ancestor: string): boolean {
  return path === ancestor || isBelow(path, ancestor)
}

/** True for what is under `ancestor`, not for `ancestor` itself. */
export function isBelow(path: string, ancestor: string): boolean {
  return path !== ancestor && path.startsWith(ancestor === '/' ? '/' : `${ancestor}/`)
}

/** Absolute, without `.`, `..`, doubled or trailing slashes. */
export function normal(path: string): string {
  const tidy = posix.normalize(path)
  return tidy.length > 1 && tidy.endsWith('/') ? tidy.slice(0, -1) : tidy
}

/** Every directory above a path, `/` left out, outermost first. */
export function ancestorsOf(path: string): readonly string[] {
  const words = path.split('/').filter(Boolean)
  return words.slice(0, -1).map((_, index) => `/${words.slice(0, index + 1).join('/')}`)
}

/** Code unit order, the same in every locale; a directory comes before what is in it. */
export function byText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

interface KnownPath {
  readonly at: string
  /** `tree`: everything under it too. */
  readonly scope: 'exact' | 'tree'
  readonly why: string
}

function covers({ at, scope }: KnownPath, path: string): boolean {
  return scope === 'tree' ? isWithin(path, at) : path === at
}

const CLOSED_TARGETS: readonly KnownPath[] = [
  { at: '/', scope: 'exact', why: 'is the root of the sandbox' },
  ...RUNTIME_ROOTS.map(
    (at) => ({ at, scope: 'tree', why: "holds the system's programs, which are there already" }) as const,
  ),
  { at: '/etc', scope: 'exact', why: 'is a chosen list of files; show single files below it' },
  { at: '/proc', scope: 'tree', why: 'is made fresh for every run' },
  { at: '/sys', scope: 'tree', why: 'holds only what is made for every run' },
  { at: '/dev', scope: 'tree', why: 'is made fresh for every run' },
  { at: '/boot', scope: 'tree', why: 'is a system directory' },
  { at: '/.init', scope: 'tree', why: "is the sandbox's own PID 1" },
  { at: '/run', scope: 'exact', why: 'is scratch space of its own; show single paths below it' },
  {
    at: '/home',
    scope: 'exact',
    why: `holds the sandbox's own home ${SANDBOX_HOME}; show single directories below it`,
  },
]

/** Why nothing may be mounted there, or undefined when it may. */
export function closedTarget(target: string): string | undefined {
  return CLOSED_TARGETS.find((known) => covers(known, target))?.why
}

const CLOSED_SOURCES: readonly KnownPath[] = [
  { at: '/', scope: 'exact', why: 'is the whole host' },
  { at: '/proc', scope: 'tree', why: "shows the host's processes" },
  { at: '/sys', scope: 'tree', why: "shows the host's devices" },
]

/** Why this host directory can be no zone, or undefined when it can. /dev/shm holds ordinary files, the rest of /dev does not. */
export function closedSource(source: string): string | undefined {
  if (isWithin(source, '/dev') && !isBelow(source, '/dev/shm')) return "holds the host's devices"
  return CLOSED_SOURCES.find((known) => covers(known, source))?.why
}

/** Directories that people are in by accident, so working there does not ask to mount them. */
const SHARED_PATHS: readonly KnownPath[] = [
  ...RUNTIME_ROOTS.map((at) => ({ at, scope: 'tree', why: 'is a system directory' }) as const),
  ...['/etc', '/proc', '/sys', '/dev', '/boot', '/run'].map(
    (at) => ({ at, scope: 'tree', why: 'is a system directory' }) as const,
  ),
  ...[
    '/',
    '/home',
    '/mnt',
    '/media',
    '/opt',
    '/srv',
    '/tmp',
    '/var',
    '/var/tmp',
    '/var/lib',
    '/var/log',
    '/lost+found',
  ].map((at) => ({ at, scope: 'exact', why: 'is shared by the whole system' }) as const),
]

/** Places that a plan for the caller's directory depends on: trees, and directories that are shared themselves. */
export const SHARED_TREES: readonly string[] = SHARED_PATHS.flatMap(({ at, scope }) => (scope === 'tree' ? [at] : []))
export const SHARED_DIRECTORIES: readonly string[] = SHARED_PATHS.map(({ at }) => at)

/** Why the caller's directory is not shown without being asked for, or undefined when it is. */
export function withheldWorkspace(cwd: string, home: string): string | undefined {
  if (home !== '' && cwd === home) return 'is the home directory'
  if (home !== '' && isBelow(home, cwd)) return 'holds the home directory'
  return SHARED_PATHS.find((known) => covers(known, cwd))?.why
}

/** Words of a home directory that hold credentials or decide what programs do; never shown without being named. */
const CREDENTIAL_PATHS = [
  '.ssh',
  '.aws',
  '.gnupg',
  '.config',
  '.netrc',
  '.npmrc',
  '.yarnrc',
  '.yarnrc.yml',
  '.pypirc',
  '.docker',
  '.kube',
  '.azure',
  '.gcloud',
  '.oci',
  '.git-credentials',
  '.gitconfig',
  '.m2',
  '.gradle',
  '.composer',
  '.gem/credentials',
  '.cargo/credentials',
  '.cargo/credentials.toml',
  '.vault-token',
  '.terraform.d',
  '.terraformrc',
  '.password-store',
  '.mozilla',
  '.thunderbird',
  '.pki',
  '.local/share/keyrings',
  '.claude',
  '.codex',
  '.cache',
  '.bash_history',
  '.zsh_history',
  '.pgpass',
  '.my.cnf',
  '.condarc',
  '.continuum',
  '.databricks',
  '.databrickscfg',
  '.huggingface',
  '.kaggle',
  '.netlify',
] as const

/** True for a place of credentials itself, and for what lies in it. */
export function isCredential(path: string, home: string): boolean {
  if (isWithin(path, '/etc/shadow') || isWithin(path, '/etc/gshadow') || isWithin(path, '/etc/ssl/private')) return true
  return home !== '' && CREDENTIAL_PATHS.some((known) => isWithin(path, posix.join(home, known)))
}

/** True when mounting this canonical directory would expose credentials: a whole home, one of these paths, or a parent of one. */
export function holdsCredentials(directory: string, home: string): boolean {
  if (directory === '/' || withheldWorkspace(directory, home) !== undefined) return true
  if (home === '') return false
  return CREDENTIAL_PATHS.some((known) => {
    const secret = posix.join(home, known)
    return isWithin(directory, secret) || isBelow(secret, directory)
  })
}

/** The PATH entries that count: absolute ones. An empty or relative entry means the caller's directory, where any user may plant programs. */
export function searchPath(path: readonly string[]): readonly string[] {
  return [
    ...new Set(
      path.filter((entry) => posix.isAbsolute(entry) && !entry.includes('\0')).map((entry) => posix.resolve(entry)),
    ),
  ]
}
