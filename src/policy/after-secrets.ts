/**
 * `network.afterSecrets: deny`: a sandbox that shows a zone with `secret: true` has no network. Decided before the run, for all of it: what
 * was read once cannot be taken back, and a command reads before anybody can look. Pure.
 */
import { SandboxError } from '../error.ts'
import { networkPolicy } from './keys/network-layers.ts'
import type { Policy } from './policy.ts'
import type { Layer } from './values.ts'

const SPOKEN: readonly Layer[] = ['flag', 'environment']
const OPENING = ['network.mode', 'network.allow', 'network.local', 'network.publish']

/**
 * @param shown the policy as it will be planned
 * @param granted the same before a worker narrowed it: a worker cannot make a secret zone an ordinary one
 * @throws SandboxError POLICY_INVALID where a flag or variable of the caller asks for a network all the same
 */
export function keepSecrets(shown: Policy, granted: Pick<Policy, 'zones'>): Policy {
  const { network } = shown
  const secret = [...shown.zones, ...granted.zones].find((zone) => zone.secret === true)
  if (network.afterSecrets !== 'deny' || secret === undefined) return shown
  const closedBy = `zone ${secret.name} is secret (network.afterSecrets: deny)`
  refuseSockets(shown, closedBy)
  if (network.mode === 'none') return shown
  const asked = OPENING.flatMap((key) => shown.origins[key] ?? []).find(({ layer }) => SPOKEN.includes(layer))
  if (asked !== undefined)
    throw new SandboxError(
      'POLICY_INVALID',
      `${asked.source}: expected no network, because ${closedBy}, got ${network.mode}.`,
      {
        hint: `leave out ${asked.source}, or say --after-secrets allow if what is in that zone may leave`,
      },
    )
  const { record: _record, local: _local, publish: _publish, ...rest } = network
  return { ...shown, network: networkPolicy({ ...rest, mode: 'none', allow: [], closedBy }) }
}

/** The server of a socket may have a network. */
function refuseSockets({ zones, sshAgent }: Policy, closedBy: string): void {
  const open = zones.find(({ kind, sockets }) => kind === 'socket' || sockets)
  const way = open === undefined ? (sshAgent ? 'sshAgent' : undefined) : `zone ${open.name}`
  if (way === undefined) return
  throw new SandboxError('POLICY_INVALID', `${way}: expected no socket of this host, because ${closedBy}.`, {
    hint: `leave out ${way}, or say --after-secrets allow if what is in that zone may leave`,
  })
}
