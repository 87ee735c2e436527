/**
 * Whether the plan of a run depends on its program. native/client/program.c decides the same by its own look at the disk. Pure.
 *
 * A plan differs by its program in one thing: the toolchain that the program belongs to is shown. Each pattern of a toolchain holds one
 * of TOOLCHAIN_WORDS, so a program whose path has none of them, or that is not there at all, is served by the plan that all share.
 */
import { KEY_ANY_PROGRAM, TOOLCHAIN_WORDS } from '../contract.ts'
import type { PathFacts } from '../plan/mounts.ts'
import { decidedBy } from '../plan/paths-to-inspect.ts'
import type { Request } from '../plan/request.ts'
import { foundCommand, pathsOfProgram } from '../plan/toolchain.ts'
import type { Policy } from '../policy/policy.ts'

/** The part of a plan's dependencies that its program decides. */
export interface ProgramGuards {
  /** The word of the key: one for all programs that share a plan, else the name. */
  readonly program: string
  /** Observations that led to the plan, and must still be true. */
  readonly paths: PathFacts
}

export function guardsOfProgram(policy: Policy, request: Request, paths: PathFacts): ProgramGuards {
  return sharesPlan(request, paths)
    ? { program: KEY_ANY_PROGRAM, paths: decidedBy(policy, { ...request, command: [] }, paths) }
    : { program: request.command[0] ?? '', paths: decidedBy(policy, request, paths) }
}

export function sharesPlan(request: Request, paths: PathFacts): boolean {
  const [name = ''] = request.command
  // An empty name and a name of WASI are the policy's and the backend's to judge.
  if (name === '' || /\/$|\.wasm$/.test(name) || [name, ...request.path].some(goesUp)) return false
  const found = foundCommand(request, paths)
  return found === undefined || ![found, ...pathsOfProgram(found, paths)].some(isOfToolchain)
}

/** `..` is resolved as text in src/plan/, and by links in the kernel. */
const goesUp = (path: string): boolean => path.split('/').includes('..')

const WORDS: ReadonlySet<string> = new Set(TOOLCHAIN_WORDS)

const isOfToolchain = (path: string): boolean => path.split('/').some((word) => WORDS.has(word))
