/**
 * The compiled system call filter of a policy.
 * Edge: files.
 */
import { readFileSync, statSync } from 'node:fs'
import { SandboxError } from '../error.ts'
import type { HostFacts } from '../host/facts.ts'
import { isForeign } from '../os/native-programs.ts'
import type { Policy } from '../policy/policy.ts'
import { filterFor, keptSets, SHIPPED_WAYS } from '../seccomp/filter.ts'
import type { SetName } from '../seccomp/rules.ts'
import type { MountWay } from '../seccomp/ways.ts'

const LARGEST_FILTER_FILE = 1024 ** 2

export interface Filter {
  /** Compiled, as a function of the machine. */
  readonly seccompFilter: (arch: HostFacts['arch']) => string
  /** Mount operations that it allows a command: known by test of a shipped filter, looked up for a user's own. */
  readonly mountWays: readonly MountWay[]
}

export async function filterOf(
  { seccomp }: Policy,
  { uid, arch, refused }: Pick<HostFacts, 'uid' | 'arch'> & { readonly refused: readonly SetName[] },
): Promise<Filter> {
  const always = [...new Set([...keptSets({ isRoot: uid === 0 }), ...refused])]
  if (typeof seccomp === 'string')
    return { seccompFilter: await filterFor({ profile: seccomp, arch, always }), mountWays: SHIPPED_WAYS[seccomp] }
  const profile = await readFilterFile(seccomp.file)
  const { mountWays } = await import('../seccomp/ways.ts')
  return { seccompFilter: await filterFor({ profile, arch, always }), mountWays: mountWays(profile, arch, always) }
}

async function readFilterFile(file: string) {
  const text = filterTextOf(file)
  const { parseSeccompFile } = await import('../seccomp/file.ts')
  return parseSeccompFile({ text, source: file })
}

function filterTextOf(file: string): string {
  try {
    const status = statSync(file)
    if (!status.isFile()) throw unreadableFilter(file, 'expected a regular file')
    if (isForeign(status.uid))
      throw unreadableFilter(file, `it belongs to user ${status.uid}, expected root or yourself`)
    if (status.size > LARGEST_FILTER_FILE)
      throw unreadableFilter(file, `expected at most 1MiB, got ${status.size} bytes`)
    return readFileSync(file, 'utf8')
  } catch (cause) {
    throw cause instanceof SandboxError
      ? cause
      : unreadableFilter(file, (cause as NodeJS.ErrnoException).code ?? (cause as Error).message, cause)
  }
}

function unreadableFilter(file: string, why: string, cause?: unknown): SandboxError {
  return new SandboxError('PROFILE_UNREADABLE', `seccomp: ${file}: ${why}`, {
    hint: '--seccomp takes default, strict, nested, off or a file; see docs/reference/seccomp.md',
    cause,
  })
}
