/** Reading and changing plain data by dotted keys. Pure. */
import { isMapping } from '../text/json.ts'

/** @returns undefined where a part of the way is missing */
export const valueAt = (data: unknown, path: string): unknown =>
  path.split('.').reduce<unknown>((inner, name) => (isMapping(inner) ? inner[name] : undefined), data)

/** A copy that differs in that one value; missing mappings on the way are made. */
export function withValueAt<Data extends object>(data: Data, path: string, value: unknown): Data {
  const [first = '', ...rest] = path.split('.')
  if (rest.length === 0) return { ...data, [first]: value }
  const inner = (data as Readonly<Record<string, unknown>>)[first]
  return { ...data, [first]: withValueAt(isMapping(inner) ? inner : {}, rest.join('.'), value) }
}
