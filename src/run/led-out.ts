import { posix } from 'node:path'
import { linkText } from '../host/paths.ts'
import { realOf } from '../os/look.ts'
import type { PlannedZone } from '../plan/plan.ts'
import { insideOf } from '../plan/toolchain.ts'
import { ancestorsOf, around, holdsCredentials, isBelow, isWithin } from '../plan/well-known-paths.ts'
import { type InvisiblePath, shellWord } from '../report/hints.ts'
import type { MissingNames } from '../report/missing-names.ts'
import type { Prepared } from './plan-run.ts'
import { interpreterOf, isShowable, readStart, SAME_PATH } from './show-path.ts'

/** Where the command works, inside and on the host. */
interface Place {
  readonly run: Prepared
  readonly zone: PlannedZone
  /** Its directory on the host. */
  readonly directory: string
}

/** @returns what the host has at these names, with the flags by which the command finds it under the same name */
export function ledOut(names: MissingNames, run: Prepared): readonly InvisiblePath[] {
  const { workdir, zones } = run.plan
  const zone = around(
    workdir,
    zones.filter(({ kind }) => kind === 'directory'),
  )
  if (zone === undefined) return []
  const place = { run, zone, directory: posix.join(zone.source, posix.relative(zone.target, workdir)) }
  const found = [
    ...names.paths.flatMap((name) => ledOutByName(name, place) ?? []),
    ...names.modules.flatMap((name) => moduleAbove(name, place) ?? []),
  ]
  const told = found.filter(({ path }) => !run.request.homes.some((home) => holdsCredentials(path, home)))
  return told.filter((one, at) => told.findIndex(({ path }) => path === one.path) === at)
}

function ledOutByName(name: string, place: Place): InvisiblePath | undefined {
  if (posix.isAbsolute(name)) return climbedTo(name, place)
  const path = posix.resolve(place.directory, name)
  if (!isWithin(path, place.zone.source)) return realOf(path) === undefined ? undefined : withRoot(path, place)
  return ledByLink(path, place) ?? elsewhereByScript(path, place)
}

/** Inside there is nothing between the root and the workspace: `/workspace/../../x` is `/x`, and on the host it may be in any directory above. */
function climbedTo(name: string, place: Place): InvisiblePath | undefined {
  if (isWithin(name, place.zone.target)) return ledOutByName(posix.relative(place.run.plan.workdir, name), place)
  const parent = posix.dirname(place.zone.target)
  if (place.zone.source === place.zone.target || !isBelow(name, parent)) return undefined
  const climbed = posix.relative(parent, name)
  const candidates = above(place.zone.source).map((directory) => posix.join(directory, climbed))
  const path = candidates.find(
    (candidate) => realOf(candidate) !== undefined && rootFor(candidate, place) !== undefined,
  )
  return path === undefined ? undefined : withRoot(path, place)
}

/** The first link on the way that leads out; an absolute one is found as soon as what it names is there. */
function ledByLink(path: string, place: Place): InvisiblePath | undefined {
  if (realOf(path) === undefined) return undefined
  const { zone, run } = place
  const names = posix.relative(zone.source, path).split('/')
  const steps = names.map((_, at) => posix.join(zone.source, ...names.slice(0, at + 1)))
  for (const step of steps) {
    const text = linkText(step)
    if (text === '') continue
    const to = posix.resolve(posix.dirname(step), text)
    if (!posix.isAbsolute(text)) {
      if (!isWithin(to, zone.source)) return withRoot(to, place)
    } else if (isWithin(to, zone.source))
      return zone.source === zone.target ? undefined : { path: to, flags: SAME_PATH }
    else if (insideOf(to, run.plan.zones) !== to && isShowable(to, run))
      return { path: to, flags: `--ro ${shellWord(to)}` }
  }
  return undefined
}

/** Nearest first. */
const above = (path: string): readonly string[] => ancestorsOf(path).toReversed()

/** A script that is there, and whose first line names its interpreter by the path of the host. */
function elsewhereByScript(path: string, { zone }: Place): InvisiblePath | undefined {
  const script = realOf(path)
  // A link of the command's could lead to a device, which must not be opened.
  if (zone.source === zone.target || script === undefined || !isWithin(script, zone.source)) return undefined
  const interpreter = interpreterOf(script)
  return interpreter !== undefined && isWithin(interpreter, zone.source) && realOf(interpreter) !== undefined
    ? { path: interpreter, flags: SAME_PATH }
    : undefined
}

function moduleAbove(name: string, place: Place): InvisiblePath | undefined {
  const candidates = above(place.zone.source).map((directory) => posix.join(directory, 'node_modules', name))
  const path = candidates.find((candidate) => realOf(candidate) !== undefined)
  return path === undefined ? undefined : withRoot(path, place)
}

/* ---- the root of a project ---- */

/** Files that a directory of several packages has at its top, and what says so where the name alone does not. */
const ROOTS: readonly (readonly [file: string, says?: RegExp])[] = [
  ['pnpm-workspace.yaml'],
  ['go.work'],
  ['package.json', /"workspaces"\s*:/],
  ['Cargo.toml', /^\[workspace\b/m],
  ['.git'],
]

const isRoot = (directory: string): boolean =>
  ROOTS.some(([file, says]) => {
    const path = posix.join(directory, file)
    return says === undefined ? realOf(path) !== undefined : says.test(readStart(path))
  })

/** The nearest directory above the zone that is a root, holds the path and may be shown. */
function rootFor(path: string, { zone, run }: Place): string | undefined {
  const holding = above(zone.source).filter((directory) => isWithin(path, directory))
  return holding.find((directory) => isRoot(directory) && isShowable(directory, run))
}

const FLAGS = { ro: '--ro', rw: '--rw', cow: '--cow' } as const

/** A zone that the caller has named keeps its place, and the command would stay in it. */
const keeping = ({ zone, directory }: Place): readonly string[] =>
  zone.name === 'workspace' ? [] : [`--workdir ${shellWord(directory)}`]

/** With the root of the project shown, the command keeps its directory, and all names in the project lead where they do on the host. */
function withRoot(path: string, place: Place): InvisiblePath {
  const root = rootFor(path, place)
  if (root !== undefined)
    return { path, flags: [`${FLAGS[place.zone.mode]} ${shellWord(root)}`, ...keeping(place)].join(' ') }
  return isShowable(path, place.run) ? { path, flags: `${SAME_PATH} --ro ${shellWord(path)}` } : { path }
}
