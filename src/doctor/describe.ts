/** Facts and offers as lines that a person can act on: each part of the machine, and what each backend can hold. Pure. */
import type { Part } from '../backends/backend.ts'
import { BACKENDS, offersOf } from '../backends/index.ts'
import type { HostFacts } from '../host/facts.ts'
import type { Lack } from '../host/probe-failures.ts'
import { type BackendName, type EngineName, NEEDS, type Need } from '../policy/values.ts'

export interface LackingNeed extends Lack {
  readonly need: Need
}

/** `why` and `fix` are empty where it is usable. */
export interface BackendReport extends Lack {
  readonly name: BackendName
  readonly usable: boolean
  readonly engines: readonly EngineName[]
  /** Need -> who holds it here. */
  readonly holds: Readonly<Partial<Record<Need, string>>>
  readonly lacks: readonly LackingNeed[]
}

export function describeBackends(facts: HostFacts): readonly BackendReport[] {
  return offersOf(facts).map(describeBackend)
}

function describeBackend({
  name,
  gives,
  lacks,
  unusable,
  engines,
}: ReturnType<typeof offersOf>[number]): BackendReport {
  return {
    name,
    usable: unusable === undefined,
    why: unusable?.why ?? '',
    fix: unusable?.fix ?? '',
    engines,
    holds: gives,
    lacks: NEEDS.flatMap((need) => {
      const lack = lacks[need]
      return lack === undefined ? [] : [{ need, ...lack }]
    }),
  }
}

/** Every part of the machine that a backend depends on, in the order of the backends. */
export async function describeParts(facts: HostFacts): Promise<readonly Part[]> {
  const parts = await Promise.all(BACKENDS.map(async ({ describe }) => (await describe?.(facts)) ?? []))
  return parts.flat()
}

/** The key by which the client trusts a plan on disk. */
export interface KeyFact {
  readonly uid: number
  /** undefined where this user has no directory that no zone may show. */
  readonly directory: string | undefined
  /** The key is there, and this user's alone. */
  readonly isUsable: boolean
}

const NO_CACHE = 'every run plans again and starts node, and llm-do pool keeps nothing ready'

export function keyPart({ uid, directory, isUsable }: KeyFact): Part {
  const name = 'launch cache'
  if (directory === undefined)
    return {
      name,
      state: 'limited',
      detail: `no runtime directory of uid ${uid} for its key: ${NO_CACHE}`,
      fix: `loginctl enable-linger ${uid}   (or, as root: install -d -m 700 -o ${uid} /run/user/${uid})`,
    }
  if (!isUsable)
    return {
      name,
      state: 'limited',
      detail: `no usable key in ${directory}: ${NO_CACHE}`,
      fix: `ls -la ${directory}   (it must be writable, yours alone, and key a file of mode 0600)`,
    }
  return { name, state: 'ok', detail: `sealed by the key in ${directory}`, fix: '' }
}
