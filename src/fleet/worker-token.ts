/**
 * An agent's proof for its server: a JWT (RFC 7519) signed with HMAC-SHA256 and a secret that both know.
 * Pure: the time is an argument.
 */
import { createHmac } from 'node:crypto'

/** Seconds. */
const LIFETIME_S = 24 * 60 * 60

export interface TokenClaims {
  readonly workerId: string
  readonly hostname: string
}

export function workerToken({ workerId, hostname }: TokenClaims, secret: string, nowMs: number): string {
  const issued = Math.floor(nowMs / 1000)
  const claims = { workerId, hostname, type: 'worker', iat: issued, exp: issued + LIFETIME_S }
  const signed = [{ alg: 'HS256', typ: 'JWT' }, claims].map(encoded).join('.')
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
}

const encoded = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url')
