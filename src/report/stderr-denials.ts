/**
 * Reads refusals from the stderr of a failed command, as far as the plan and the host confirm them: a path that is mounted read-only, a scratch file
 * system that has a size, a path of the host that is not shown. The words are the command's, so they may lie; a lie can do no more than name
 * one of these, and nothing is ever allowed by it. Pure.
 */
import { posix } from 'node:path'
import type { Capture } from '../backends/outcome.ts'
import type { Plan, PlannedZone, Scratch } from '../plan/plan.ts'
import { around, closedTarget, isWithin } from '../plan/well-known-paths.ts'
import { fullDenial } from './denials.ts'
import { type InvisiblePath, shellWord, WORKSPACE_ZONE, zoneFlag } from './hints.ts'
import { closedName } from './protected.ts'
import type { Denial } from './result.ts'

/** Bytes of the end of stderr that are looked at: the same as in native/client/result.c. */
const LOOKED_AT = 16 << 10
/** A command that tells more is cut: the first refusals are mostly the cause. */
const MOST = 32

export function endOf({ head, tail }: Capture): string {
  const all = Buffer.concat([head, tail])
  return all.subarray(Math.max(0, all.length - LOOKED_AT)).toString('utf8')
}

const READ_ONLY = /read-only file system|\bEROFS\b/i
const FULL = /no space left on device|\bENOSPC\b/i
const QUOTED = /['"`\u2018\u201c]([^'"`\u2018\u2019\u201c\u201d]{1,4096})['"`\u2019\u201d]/g

/** Words of a line that may be paths: what is quoted, and what is bare between blanks and colons. */
export function wordsOf(line: string): readonly string[] {
  const quoted = [...line.matchAll(QUOTED)].map(([, word = '']) => word)
  const bare = line.replace(QUOTED, ' ').split(/[\s:,;()]+/)
  return [...quoted, ...bare].filter((word) => word !== '' && word.length <= 4096 && !word.includes('\0'))
}

/** Absolute paths in the end of a text: candidates for what is here and not inside. */
export function absolutePathsIn(text: string): readonly string[] {
  const paths = text
    .split('\n')
    .flatMap(wordsOf)
    .filter((word) => /^\/[^/]/.test(word))
  return [...new Set(paths.map((path) => posix.normalize(path)))]
}

/** @param text the end of stderr */
export function stderrDenials(text: string, plan: Plan): readonly Denial[] {
  const lines = text.split('\n')
  const found = [
    ...lines.filter((line) => READ_ONLY.test(line)).map((line) => readOnlyDenial(line, plan)),
    ...lines.filter((line) => FULL.test(line)).map((line) => noSpaceDenial(line, plan)),
  ]
  return counted(found.flatMap((denial) => denial ?? []))
}

/** The same refusal is one row. */
function counted(found: readonly Omit<Denial, 'evidence'>[]): readonly Denial[] {
  const rows = new Map<string, Denial>()
  for (const denial of found) {
    const row = rows.get(`${denial.operation} ${denial.target}`)
    rows.set(`${denial.operation} ${denial.target}`, {
      ...denial,
      count: (row?.count ?? 0) + denial.count,
      evidence: 'stderr',
    })
  }
  return [...rows.values()].slice(0, MOST)
}

type Found = Omit<Denial, 'evidence'> | undefined

/** The text before the words of the refusal: `make: a.o: Read-only file system`. Not `EROFS: read-only file system, open 'a.o'`. */
const BEFORE =
  /(?:['"`\u2018\u201c]([^'"`\u2018\u2019\u201c\u201d]+)['"`\u2019\u201d]|([^\s'"`\u2018\u2019\u201c\u201d]+)): *read-only file system/i

/** Paths that a line may mean: what stands before the refusal; else what is absolute, or quoted; else the command's directory. */
const writtenPaths = (line: string, workdir: string): readonly string[] => pathsBefore(BEFORE, line, workdir)

const BEFORE_DENIED = new RegExp(BEFORE.source.replace('read-only file system', 'permission denied'), 'i')

/** The same of a line about rights. */
export const pathsSaidIn = (line: string, workdir: string): readonly string[] =>
  pathsBefore(BEFORE_DENIED, line, workdir)

function pathsBefore(refusal: RegExp, line: string, workdir: string): readonly string[] {
  const [, quotedBefore, before = quotedBefore] = refusal.exec(line) ?? []
  const quoted = [...line.matchAll(QUOTED)].map(([, word = '']) => word)
  const named =
    before === undefined || /^(?:EROFS|EACCES)$/.test(before) ? [...absolutePathsIn(line), ...quoted] : [before]
  const words = named.filter((word) => !word.includes('\0'))
  return words.length === 0 ? [workdir] : words.map((word) => posix.resolve(workdir, word))
}

function readOnlyDenial(line: string, plan: Plan): Found {
  const found = writtenPaths(line, plan.workdir).map((path) => writeDenial(path, plan))
  return found.find((denial) => denial?.fix) ?? found.find((denial) => denial !== undefined)
}

/** A write at a path that the plan shows read-only; undefined where it is writable. */
export function writeDenial(path: string, { zones, scratch }: Plan): Found {
  const mount = around<PlannedZone | Scratch>(path, [...zones, ...scratch])
  const denial = { layer: 'mount', operation: 'write', target: path, count: 1 } as const
  if (mount === undefined) return { ...denial, ...systemFix(posix.dirname(path)) }
  if (!('source' in mount)) return undefined
  if (mount.mode === 'ro') return { ...denial, fix: writableFix(mount), key: 'zones' }
  const name = closedName(posix.join(mount.source, posix.relative(mount.target, path)), zones)
  return name === undefined
    ? undefined
    : { ...denial, layer: 'guard', fix: `--protect-not ${shellWord(name)}`, key: 'protectNot' }
}

/** A path in no zone belongs to the system, or to the root of the sandbox: an empty directory may take its place. */
function systemFix(directory: string): Pick<Denial, 'fix' | 'key'> {
  const isClosed = closedTarget(directory) !== undefined
  return isClosed ? { fix: '', key: '' } : { fix: `--tmpfs ${shellWord(directory)}`, key: 'zones' }
}

/** The flag that shows the same zone for writing. */
const writableFix = (zone: PlannedZone): string => (zone.kind === 'socket' ? '' : zoneFlag(zone, 'rw'))

function noSpaceDenial(line: string, { scratch, zones, workdir }: Plan): Found {
  const paths = wordsOf(line).map((word) => posix.resolve(workdir, word))
  return paths.map((path) => noSpaceAt(path, around<PlannedZone | Scratch>(path, [...zones, ...scratch]))).find(Boolean)
}

function noSpaceAt(path: string, mount: PlannedZone | Scratch | undefined): Found {
  return mount === undefined || 'source' in mount ? undefined : fullDenial(mount, path)
}

/** State of package managers: a command that sees it still cannot install a package of the system. */
export const isOfPackages = (path: string): boolean =>
  /^\/var\/(?:lib|cache)\/(?:dpkg|apt|rpm|dnf|pacman|apk)(?:\/|$)/.test(path)

/** Paths of the host that are not inside; the flag is left out where no flag can mount one. */
export function hiddenDenials(paths: readonly InvisiblePath[]): readonly Denial[] {
  return paths.slice(0, MOST).map(({ path, flags }) => {
    const fix = isOfPackages(path) ? '' : (flags ?? '')
    const key = fix === '--same-path' ? 'samePath' : fix === '' ? '' : 'zones'
    return { layer: 'mount', operation: 'read', target: path, count: 1, fix, key, evidence: 'stderr' }
  })
}

/** The flag that shows a path of the host. @param path the same inside */
export function showFix(path: string, flag: 'ro' | 'rw' | 'socket', { zones }: Plan): Pick<Denial, 'fix' | 'key'> {
  const workspace = zones.find(({ name, source, target }) => name === WORKSPACE_ZONE && source !== target)
  if (workspace !== undefined && isWithin(path, workspace.source)) return { fix: '--same-path', key: 'samePath' }
  return closedTarget(path) === undefined ? { fix: `--${flag} ${shellWord(path)}`, key: 'zones' } : { fix: '', key: '' }
}
