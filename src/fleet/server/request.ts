/** Reads a request: a bounded body, a schema's value. Everything that is wrong with one is a Refusal, which becomes its answer. */
import type { IncomingMessage } from 'node:http'
import type { z } from 'zod'
import { boundedBody } from '../../core.ts'

/** Becomes the answer of a request. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message)
  }
}

/**
 * Maximum number of values in one body of JSON: commas and opening brackets outside of texts. Our reports have a few thousand. A parser
 * takes a minute and gigabytes for a body of empty objects, and blocks node meanwhile.
 */
const MOST_VALUES = 100_000

/** Reads bodies, of which all together are bounded while they arrive. */
export class Bodies {
  readonly #most: number
  #bytes = 0

  /** @param most bytes of all bodies that are being read */
  constructor(most: number) {
    this.#most = most
  }

  /** @throws Refusal 413 where there is more than `most` bytes, 503 where others are being read */
  async of(request: IncomingMessage, most: number): Promise<Buffer> {
    const declared = Number(request.headers['content-length'] ?? most)
    // Reserved before it is read, so that bodies that grow slowly cannot pass the bound together.
    const reserved = Math.min(declared, most)
    if (this.#bytes + reserved > this.#most) throw new Refusal(503, 'too much is being received at once')
    this.#bytes += reserved
    try {
      const body = await boundedBody(request, most)
      if (body === undefined) throw new Refusal(413, `the body is larger than ${most} bytes`)
      return body
    } finally {
      this.#bytes -= reserved
    }
  }

  /** A body of JSON. @throws Refusal 400, 413, 503 */
  async json<T>(request: IncomingMessage, schema: z.ZodType<T>, most: number): Promise<T> {
    const body = await this.of(request, most)
    if (!hasFewValues(body)) throw new Refusal(400, `the body has more than ${MOST_VALUES} values`)
    try {
      return checked(schema, JSON.parse(body.toString('utf8')))
    } catch (error) {
      throw error instanceof Refusal ? error : new Refusal(400, 'the body is not JSON')
    }
  }
}

const [QUOTE, BACKSLASH, COMMA, BRACKET, BRACE] = [0x22, 0x5c, 0x2c, 0x5b, 0x7b]

/** One pass over the bytes, before a parser sees them. Right for all JSON; what is none is refused by the parser. */
function hasFewValues(body: Buffer): boolean {
  let values = 0
  let isText = false
  for (let at = 0; at < body.length && values <= MOST_VALUES; at += 1) {
    const byte = body[at]
    if (byte === QUOTE) isText = !isText
    else if (isText) at += byte === BACKSLASH ? 1 : 0
    else if (byte === COMMA || byte === BRACKET || byte === BRACE) values += 1
  }
  return values <= MOST_VALUES
}

/** @throws Refusal 400 that names what is wrong first */
export function checked<T>(schema: z.ZodType<T>, value: unknown): T {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const [problem] = parsed.error.issues
  throw new Refusal(400, `${problem?.path.join('.') ?? ''}: ${problem?.message ?? 'wrong'}`)
}
