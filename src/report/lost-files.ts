/**
 * Files that a command says it has saved in a scratch file system, which is gone with the sandbox. The words are the command's, so this is
 * a hint and never a fact. Pure.
 */
import { posix } from 'node:path'
import type { Plan } from '../plan/plan.ts'
import { isBelow, isWithin, SANDBOX_HOME } from '../plan/well-known-paths.ts'
import { absolutePathsIn } from './stderr-denials.ts'
import { writtenOnce } from './written-names.ts'

/** The same words as in native/client/result.c. */
const SAVED = /\b(?:sav|wrote|writ|creat|generat|export|stor|dump|download)/i

/** @param texts the ends of what the command has printed */
export function savedHints(texts: readonly string[], plan: Plan): readonly string[] {
  const lines = texts.flatMap((text) => text.split('\n').filter((line) => SAVED.test(line)))
  return hintsFor(absolutePathsIn(lines.join('\n')), plan)
}

/** At a terminal output is not seen. There it is a name that the command's own words write, and use for nothing else. */
export const lostHints = (command: readonly string[], plan: Plan): readonly string[] =>
  hintsFor(
    writtenOnce(command).map((name) => posix.resolve(plan.workdir, name)),
    plan,
  )

/** One for each scratch directory. Caches and logs of programs lie in directories whose names begin with a dot. */
function hintsFor(paths: readonly string[], plan: Plan): readonly string[] {
  const named = paths.map((path) => path.replace(/\.+$/, '')).filter((path) => !path.includes('/.'))
  return plan.scratch.flatMap(({ target }) => {
    const path = named.find((one) => isBelow(one, target) && isLost(one, plan))
    return path === undefined ? [] : [hintOf(path, target, plan)]
  })
}

const isLost = (path: string, { zones }: Plan): boolean => !zones.some(({ target }) => isWithin(path, target))

function hintOf(path: string, target: string, { zones, workdir }: Plan): string {
  const isWritable = zones.some((zone) => zone.mode !== 'ro' && isWithin(workdir, zone.target))
  const below = `${isWritable ? '' : '--rw . and '}a path below ${workdir}`
  const kept = target === SANDBOX_HOME ? `--home kept, or ${below}` : below
  return `${path} is gone with the scratch ${target}; to keep it: ${kept}`
}
