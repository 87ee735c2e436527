/** Decides whether a restricted network has proxies inside, and the variables that name them. Pure. */
import { NET_ADDRESS, NET_PROXY_PORT } from '../contract.ts'
import type { NetworkPolicy } from '../policy/values.ts'

/** The transparent path serves every program wherever a network can be restricted, so `auto` makes none. */
export const hasProxy = ({ mode, proxy }: NetworkPolicy): boolean => mode === 'restricted' && proxy === 'on'

/** HTTP for all: a SOCKS address in ALL_PROXY ends programs that could do without (Python's httpx, which then wants a further package). */
const PROXY = `http://${NET_ADDRESS}:${NET_PROXY_PORT}`
const NO_PROXY = 'localhost,127.0.0.1,::1'

export function proxyVariables(network: NetworkPolicy): Readonly<Record<string, string>> {
  if (!hasProxy(network)) return {}
  const upper = { HTTP_PROXY: PROXY, HTTPS_PROXY: PROXY, ALL_PROXY: PROXY, NO_PROXY }
  const lower = Object.fromEntries(Object.entries(upper).map(([name, value]) => [name.toLowerCase(), value]))
  return { ...upper, ...lower, NODE_USE_ENV_PROXY: '1' }
}
