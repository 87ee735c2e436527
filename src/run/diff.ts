/**
 * The changes of a layer as a patch, made by git inside a sandbox of our own: it reads what a command wrote.
 * Edge: this process as the caller.
 */
import { posix } from 'node:path'
import { type RawChange, textOf } from '../cow/change.ts'
import { changesAt, type Layer, withView } from '../cow/layers.ts'
import { SandboxError } from '../error.ts'
import { GIT } from '../policy/protected.ts'
import { exec } from './exec.ts'

export interface DiffOptions {
  readonly paths?: readonly string[]
  /** How many lines of each file, instead of the lines. */
  readonly stat?: boolean
  readonly env?: Readonly<Record<string, string | undefined>>
}

export interface Diff {
  /** Input for `git apply`, or the table of `stat`; bytes, as files are. */
  readonly patch: Buffer
  /** In a directory of git, where `git apply` changes nothing: not in the patch. */
  readonly inGit: readonly string[]
  /** How many more changes no patch of git can show. */
  readonly unshown: Unshown
}

export interface Unshown {
  /** Modes of directories, and of files in more than whether they are programs. */
  readonly modes: number
  /** Directories made or removed without a file in them. */
  readonly directories: number
  /** Files at paths that are longer than git takes. */
  readonly long: number
  /** Devices, FIFOs and sockets, which are never applied. */
  readonly special: number
}

/** Variables and files of a person must not change what a patch looks like, and nothing of the repository may be run. */
const GIT_ENVIRONMENT = {
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_ATTR_NOSYSTEM: '1',
  GIT_CEILING_DIRECTORIES: '/',
  LC_ALL: 'C.UTF-8',
}

const GIT_DIFF = [
  'git',
  'diff',
  '--no-index',
  '--binary',
  '--no-ext-diff',
  '--no-textconv',
  '--no-renames',
  '--no-color',
]
/** `git diff --no-index --stat` names both directories in its paths; that of a patch names neither. */
const STAT = '"$@" > /tmp/patch; test ! -s /tmp/patch || git apply --stat /tmp/patch'
const SHOWN = '/diff'
/** Exit statuses of git diff: no difference, some. */
const COMPARED = [0, 1]

/** @throws SandboxError for a layer that cannot be read, a path that names no change, and on a machine without git */
export async function diffLayer(
  layer: Layer,
  { paths = [], stat = false, env = process.env }: DiffOptions = {},
): Promise<Diff> {
  const found = await changesAt(layer, paths)
  const special = found.filter(isSpecial)
  const chosen = found.filter((change) => !isSpecial(change))
  const inGit = chosen.filter(isInGit)
  const shown = chosen.filter((change) => !isInGit(change) && change.path.length <= LONGEST)
  const long = chosen.filter(({ type, path }) => type !== 'directory' && path.length > LONGEST)
  const patch =
    shown.length === 0 ? Buffer.alloc(0) : await withView(layer, shown, (view) => compare({ view, stat, env }))
  return {
    patch,
    inGit: inGit.map(({ path }) => textOf(path)),
    unshown: {
      modes: shown.filter(hasHiddenMode).length,
      directories: countEmpty(shown),
      long: long.length,
      special: special.length,
    },
  }
}

const isSpecial = ({ type, kind }: RawChange): boolean => type === 'other' && kind !== 'deleted'

/** PATH_MAX of linux/limits.h, with room for what stands before a path. */
const LONGEST = 4000

/** Git keeps of a mode whether a file is a program. */
function hasHiddenMode({ kind, type, mode, modeBefore }: RawChange): boolean {
  if (kind === 'deleted' || modeBefore === '' || !['file', 'directory'].includes(type)) return false
  const other = Number.parseInt(mode, 8) ^ (Number.parseInt(modeBefore, 8) & 0o777)
  return type === 'directory' ? other !== 0 : (other & ~0o111) !== 0
}

/** Parents come before what is in them, so a directory of these that nothing follows into is empty. */
function countEmpty(changes: readonly RawChange[]): number {
  const entries = changes.filter(
    ({ kind, type }) => type !== 'directory' || ['added', 'deleted', 'type'].includes(kind),
  )
  const isIn = (one: RawChange | undefined, { zone, path }: RawChange): boolean =>
    one?.zone === zone && one.path.startsWith(`${path}/`)
  return entries.filter((one, index) => one.type === 'directory' && !isIn(entries[index + 1], one)).length
}

const plural = (count: number, one: string, many: string): readonly string[] =>
  count === 0 ? [] : [`${count} ${count === 1 ? one : many}`]

/** For people; '' where the patch shows everything. */
export const unshownText = ({ modes, directories, long, special }: Unshown): string =>
  [
    ...plural(modes, 'mode', 'modes'),
    ...plural(directories, 'empty directory', 'empty directories'),
    ...plural(long, 'file at a path too long for git', 'files at paths too long for git'),
    ...plural(special, 'special file', 'special files'),
  ].join(', ')

const isInGit = ({ path }: RawChange): boolean => path.split('/').includes(GIT)

interface Comparison {
  readonly view: string
  readonly stat: boolean
  readonly env: NonNullable<DiffOptions['env']>
}

async function compare({ view, stat, env }: Comparison): Promise<Buffer> {
  const prefixes = ['--src-prefix=', '--dst-prefix=']
  const patch = [...GIT_DIFF, ...prefixes, 'a', 'b']
  const result = await exec({
    command: stat ? ['sh', '-c', STAT, 'sh', ...patch] : patch,
    policy: {
      zones: [{ name: posix.basename(SHOWN), mode: 'ro', hostPath: view, target: SHOWN }],
      workspace: 'none',
      workdir: SHOWN,
      network: 'none',
      env: { set: GIT_ENVIRONMENT },
      resources: { timeout: '5m', output: 'none', memory: '2g' },
    },
    cwd: '/',
    env: plain(env),
  })
  if (result.error !== undefined)
    throw new SandboxError('LAYER_FAILED', `diff: ${result.error.message}`, { hint: result.error.hint })
  if (!COMPARED.includes(result.exitCode ?? -1))
    throw new SandboxError(
      'LAYER_FAILED',
      `diff: git ended with ${result.exitCode ?? result.signal}: ${result.stderr.trim() || result.message}`,
      {
        hint: result.hints[0] ?? 'llm-do changes lists them without git',
      },
    )
  return named(Buffer.from(result.stdout, result.encoding))
}

/** A line of a file has a sign in front, so this is the head of one; not by `^`, which a carriage return in a file would match as well. */
const HEAD = /(?<=^|\n)diff --git ([^\n]+)(?=\n(?:new|deleted) file mode )/g

/** `--no-index` gives a file that only one side has the same path twice; git's own form begins with `a/` and `b/`. */
function named(patch: Buffer): Buffer {
  const text = patch.toString('latin1').replace(HEAD, (_, paths: string) => {
    const path = paths.slice(0, (paths.length - 1) / 2)
    const on = (side: string) => path.replace(/^("?)[ab]\//, `$1${side}/`)
    return `diff --git ${on('a')} ${on('b')}`
  })
  return Buffer.from(text, 'latin1')
}

/** Options of the caller's runs are not for this one. */
function plain(env: Comparison['env']): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('LLM_DO_EXEC_')))
}
