/** Reads JSON that others have written, of which nothing is known. Pure. */

export type Mapping = Readonly<Record<string, unknown>>

export const isMapping = (value: unknown): value is Mapping =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** @returns undefined for everything but JSON, such as a line whose writer was killed half-way */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** @returns undefined for everything but a JSON object */
export function mappingIn(text: string): Mapping | undefined {
  const value = jsonIn(text)
  return isMapping(value) ? value : undefined
}
