/**
 * The token that clients of HTTP have to send.
 * Edge: files, randomness, the user.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { isWithin, namesOnTheWay, type Plan, randomHex, readPrivateFile, SandboxError } from '../core.ts'

const RANDOM_BYTES = 32
/** Characters that may stand in a header as they are (RFC 6750), and too many to be guessed. */
const TOKEN = /^[\w.~+/-]{32,4096}=*$/
const MOST_BYTES = 8192

export const newToken = (): string => randomHex(RANDOM_BYTES)

/** @throws SandboxError for a file that others can read, that no token is in, or that commands of the server would see */
export function readToken(file: string, { zones }: Pick<Plan, 'zones'>): string {
  const bytes = readPrivateFile(file, { uid: process.getuid?.() ?? -1, most: MOST_BYTES })
  if (bytes === undefined)
    throw new SandboxError('USAGE', `--token-file: ${file} is no file that only you can read`, {
      hint: `(umask 177; openssl rand -hex 32 > ${file})`,
    })
  const names = namesOnTheWay(file)
  const zone = zones.find(({ source }) => names.some((name) => isWithin(name, source)))
  if (zone !== undefined)
    throw new SandboxError('USAGE', `--token-file: commands would see ${file} in ${zone.source}`, {
      hint: 'keep it in a directory that no command is shown',
    })
  const token = bytes.toString('utf8').trim()
  if (!TOKEN.test(token))
    throw new SandboxError('USAGE', `--token-file: ${file}: expected at least 32 letters and digits`, {
      hint: `(umask 177; openssl rand -hex 32 > ${file})`,
    })
  return token
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Of sums, which have one length: neither its length nor how much of it is right can be measured. */
export function isBearer(header: string | undefined, token: string): boolean {
  const given = /^Bearer +(\S+)$/i.exec(header ?? '')?.[1] ?? ''
  return timingSafeEqual(digest(given), digest(token))
}
