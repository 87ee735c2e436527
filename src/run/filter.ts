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

/** The compiled system call filter of a policy, as a function of the machine. */
export async function filterOf(
  { seccomp }: Policy,
  { uid, arch, refused }: Pick<HostFacts, 'uid' | 'arch'> & { readonly refused: readonly SetName[] },
): Promise<(arch: HostFacts['arch']) => string> {
  const profile = typeof seccomp === 'string' ? seccomp : await readFilterFile(seccomp.file)
  return filterFor({ profile, arch, always: [...new Set([...keptSets({ isRoot: uid === 0 }), ...refused])] })
}

/** Shipped filters are known by test; the simulator is loaded for a user's own. */
export async function mountWaysOf(
  { seccomp }: Policy,
  filter: string,
  { arch }: Pick<HostFacts, 'arch'>,
): Promise<readonly MountWay[]> {
  if (typeof seccomp === 'string') return SHIPPED_WAYS[seccomp]
  const { mountWays } = await import('../seccomp/ways.ts')
  return mountWays(filter, arch)
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
