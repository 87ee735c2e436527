/** How the words about network, variables, credentials and the filter add up; merge.ts has the table. Pure. */
import type { Credential, EnvironmentPolicy, NetworkPolicy, SeccompChoice } from './policy.ts'
import type { NetworkSaid } from './schema.ts'
import { originOf, resolveHostPath, type SpokenKey, type Voice } from './voice.ts'

export const unite = <V>(below: readonly V[] | undefined, above: readonly V[]): readonly V[] => [
  ...new Set([...(below ?? []), ...above]),
]

/** Lists add up; what anybody denies is no longer allowed. A layer that only denies leaves the mode as it is. */
export function addNetwork(below: NetworkPolicy | undefined, above: NetworkSaid): NetworkPolicy {
  const deny = unite(below?.deny, above.deny)
  const allow = unite(below?.allow, above.allow).filter((host) => !deny.includes(host))
  return { mode: above.mode ?? below?.mode ?? 'none', allow, deny }
}

export function networkKeys({ mode, allow, deny }: NetworkSaid): readonly SpokenKey[] {
  return [
    { key: 'network' },
    ...(mode === undefined ? [] : [{ key: 'network.mode' }]),
    ...(allow.length === 0 ? [] : [{ key: 'network.allow' }]),
    ...(deny.length === 0 ? [] : [{ key: 'network.deny' }]),
  ]
}

export function hearEnvironment({ said }: Voice): EnvironmentPolicy | undefined {
  return said.env === undefined ? undefined : { inherit: said.env.inherit ?? [], set: said.env.set ?? {} }
}

/** The highest layer that names a variable decides whether its value is set or taken over. */
export function addEnvironment(below: EnvironmentPolicy | undefined, above: EnvironmentPolicy): EnvironmentPolicy {
  const set = Object.entries(below?.set ?? {}).filter(([name]) => !above.inherit.includes(name))
  const inherit = (below?.inherit ?? []).filter((name) => !Object.hasOwn(above.set, name))
  return { inherit: unite(inherit, above.inherit), set: Object.fromEntries([...set, ...Object.entries(above.set)]) }
}

export function environmentKeys({ inherit, set }: EnvironmentPolicy): readonly SpokenKey[] {
  const names = Object.keys(set)
  return [
    { key: 'env' },
    ...(inherit.length === 0 ? [] : [{ key: 'env.inherit' }]),
    ...(names.length === 0 ? [] : [{ key: 'env.set' }]),
    ...names.map((name) => ({ key: `env.set.${name}` })),
  ]
}

/** The home directory inside; the plan makes it. */
export const SANDBOX_HOME = '/home/sandbox'

export function hearCredentials({ said, layer, home }: Voice): readonly Credential[] | undefined {
  return said.credentials?.map((credential, index) => {
    const file = resolveHostPath({ path: credential.file, layer, home })
    const target = credential.target?.replace(/^~(?=\/)/, SANDBOX_HOME) ?? placeBelowHome(file, home)
    return { file, target, origin: originOf(layer, `credentials.${index}`) }
  })
}

/** The same place below the home inside as outside; empty when the file is not below the caller's home. */
function placeBelowHome(file: string, home: string): string {
  return home !== '' && file.startsWith(`${home}/`) ? `${SANDBOX_HOME}${file.slice(home.length)}` : ''
}

export function addCredentials(
  below: readonly Credential[] | undefined,
  above: readonly Credential[],
): readonly Credential[] {
  const kept = (below ?? []).filter(({ target }) => !above.some((credential) => credential.target === target))
  return [...kept, ...above]
}

export function hearSeccomp({ said, layer, home }: Voice): SeccompChoice | undefined {
  if (said.seccomp === undefined || typeof said.seccomp === 'string') return said.seccomp
  return { file: resolveHostPath({ path: said.seccomp.file, layer, home }) }
}
