/**
 * Finds the ports that this host listens on.
 * Edge: reads /proc/net.
 */
import { textOf } from '../os/look.ts'

/** A row of proc_net_tcp: `0: 0100007F:1F90 00000000:0000 0A`, with the port in hexadecimal and the state LISTEN. */
const LISTENING = /^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:0000 0A /gm

export function listeningAmong(ports: readonly number[]): readonly number[] {
  if (ports.length === 0) return []
  // The kernel has only the first table without IPv6.
  const text = ['/proc/net/tcp', '/proc/net/tcp6'].map(textOf).join('\n')
  const open = new Set([...text.matchAll(LISTENING)].map(([, port = '']) => Number.parseInt(port, 16)))
  return ports.filter((port) => open.has(port))
}
