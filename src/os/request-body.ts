/**
 * The body of an HTTP request, up to a bound.
 * Edge: a socket.
 */
import type { IncomingMessage } from 'node:http'

/**
 * @returns undefined where there is more than `most` bytes. The rest is read and dropped, for as long as the server lets a request take: a
 * client that still writes finds a closed connection before it looks for the answer.
 */
export async function boundedBody(request: IncomingMessage, most: number): Promise<Buffer | undefined> {
  const parts: Buffer[] = []
  let length = 0
  // Destroyed, it could not be answered.
  for await (const part of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    length += part.length
    if (length > most) break
    parts.push(part)
  }
  if (length <= most) return Buffer.concat(parts)
  request.resume()
  return undefined
}
