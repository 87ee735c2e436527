/** Ports at which a command has looked for a server of the host: inside, the loopback is the sandbox's own. Pure. */
import { LOCAL_NAME, LOCALHOST } from '../network/host-rule.ts'

/** The same words as in native/client/result.c. */
const UNANSWERED = /refused|failed to connect|couldn't connect/i
const PLACE = /(?:localhost|127\.0\.0\.1|::1)\W{1,4}(?:port\W{1,2})?(\d{2,5})\b(?!\.\d)/gi
/** A command that tells more is cut. */
const MOST = 4

/** @param text the end of stderr */
export function loopbackPorts(text: string): readonly number[] {
  if (!UNANSWERED.test(text)) return []
  const ports = [...text.matchAll(PLACE)].map(([, port]) => Number(port)).filter((port) => port <= 65_535)
  return [...new Set(ports)].slice(0, MOST)
}

/** @param ports those at which this host listens */
export const loopbackHints = (ports: readonly number[], allowed: readonly number[]): readonly string[] =>
  ports.map((port) =>
    allowed.includes(port)
      ? `port ${port} of this host is ${LOCAL_NAME}:${port} inside, not ${LOCALHOST}`
      : `this host listens at port ${port}, and ${LOCALHOST} is the sandbox's own; to reach the host's: --allow-host ${LOCALHOST}:${port}`,
  )
