/**
 * Tokens of agents: JSON Web Tokens (RFC 7519) signed with HMAC-SHA256 by a secret that server and agents share. Only that one algorithm is
 * known, so a token cannot ask to be believed without a signature. Pure.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { type Mapping, mappingIn } from '../../core.ts'

/** Why a token is not believed, in words for the log of its agent. */
export class TokenError extends Error {}

interface Claims {
  readonly workerId: string
  readonly type: 'worker'
  /** Seconds since 1970. */
  readonly exp: number
}

const signatureOf = (text: string, secret: string): Buffer => createHmac('sha256', secret).update(text).digest()

/**
 * @returns the worker that a token was made for
 * @throws TokenError
 */
export function workerOfToken(token: string, { secret, nowMs }: { secret: string; nowMs: number }): string {
  const [header, payload, signature, ...rest] = token.split('.')
  if (header === undefined || payload === undefined || signature === undefined || rest.length > 0)
    throw new TokenError('the token is not a JSON Web Token')
  const expected = signatureOf(`${header}.${payload}`, secret)
  const found = Buffer.from(signature, 'base64url')
  if (found.length !== expected.length || !timingSafeEqual(found, expected))
    throw new TokenError('the token was signed with another secret')
  const { alg } = parsed(header)
  if (alg !== 'HS256') throw new TokenError('the token is not signed by HS256')
  const claims = parsed(payload) as Partial<Claims>
  if (claims.type !== 'worker' || typeof claims.workerId !== 'string')
    throw new TokenError('the token is not for a worker')
  if (typeof claims.exp !== 'number' || claims.exp * 1000 <= nowMs) throw new TokenError('the token has expired')
  return claims.workerId
}

function parsed(part: string): Mapping {
  const value = mappingIn(Buffer.from(part, 'base64url').toString('utf8'))
  if (value === undefined) throw new TokenError('the token is not a JSON Web Token')
  return value
}
