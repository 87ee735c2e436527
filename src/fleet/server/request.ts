/**
 * What is read of a request: a bounded body, a schema's value. Everything that is wrong with one is a Refusal, which becomes its answer.
 */
import type { IncomingMessage } from 'node:http'
import type { z } from 'zod'
import { boundedBody } from '../../os/request-body.ts'

/** Becomes the answer of a request. */
export class Refusal extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** @throws Refusal 413 where there is more than `most` bytes */
export async function bodyOf(request: IncomingMessage, most: number): Promise<Buffer> {
  const body = await boundedBody(request, most)
  if (body === undefined) throw new Refusal(413, `the body is larger than ${most} bytes`)
  return body
}

/** A body of JSON. @throws Refusal 400 */
export async function jsonOf<T>(request: IncomingMessage, schema: z.ZodType<T>, most: number): Promise<T> {
  const text = (await bodyOf(request, most)).toString('utf8')
  try {
    return checked(schema, JSON.parse(text))
  } catch (error) {
    throw error instanceof Refusal ? error : new Refusal(400, 'the body is not JSON')
  }
}

/** @throws Refusal 400 that names what is wrong first */
export function checked<T>(schema: z.ZodType<T>, value: unknown): T {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const [problem] = parsed.error.issues
  throw new Refusal(400, `${problem?.path.join('.') ?? ''}: ${problem?.message ?? 'wrong'}`)
}
