/** Is a wished network within a granted one? Pure. */
import type { NetworkPolicy } from '../policy/policy.ts'
import type { NetworkSaid } from '../policy/schema.ts'

const WIDTH = { none: 0, restricted: 1, host: 2 } as const

/** True when every host that the wish allows is reachable by the grant too. */
export function isWithinNetwork(wish: NetworkSaid, grant: NetworkPolicy): boolean {
  const mode = wish.mode ?? grant.mode
  if (WIDTH[mode] > WIDTH[grant.mode]) return false
  if (mode !== 'restricted' || grant.mode !== 'restricted') return true
  return wish.allow.every((host) => grant.allow.some((granted) => coversHost(granted, host)))
}

/** `*.example.org` covers `a.example.org:443` and `*.a.example.org`; a pattern without port covers every port. */
export function coversHost(granted: string, wished: string): boolean {
  const [above, below] = [hostAndPort(granted), hostAndPort(wished)]
  if (above.port !== undefined && above.port !== below.port) return false
  if (above.host === below.host) return true
  return above.host.startsWith('*.') && below.host.replace(/^\*/, '').endsWith(above.host.slice(1))
}

function hostAndPort(pattern: string): { readonly host: string; readonly port?: string } {
  const match = /^(.*?)(?::(\d+))?$/.exec(pattern)
  const [, host = pattern, port] = match ?? []
  return { host, ...(port === undefined ? {} : { port }) }
}

/** The grant, narrowed by a wish that is within it. */
export function narrowNetwork(grant: NetworkPolicy, wish: NetworkSaid): NetworkPolicy {
  const mode = wish.mode ?? grant.mode
  const deny = [...new Set([...grant.deny, ...wish.deny])]
  const listed = wish.mode === 'restricted' ? wish.allow : grant.allow
  const allow = mode === 'restricted' ? listed.filter((host) => !deny.includes(host)) : []
  return { mode, allow, deny }
}

/** For people: `restricted (a.example, b.example)`. */
export function showNetwork({ mode, allow }: { readonly mode?: string; readonly allow: readonly string[] }): string {
  return allow.length === 0 ? (mode ?? 'the same mode') : `${mode ?? 'restricted'} (${allow.join(', ')})`
}
