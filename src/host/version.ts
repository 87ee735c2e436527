/** Versions of programs. Pure. */

/** Compares dotted versions number by number; what is not a version counts as older than everything. */
export function isOlder(version: string, than: string): boolean {
  const parts = (text: string): number[] => text.split('.').map((part) => Number.parseInt(part, 10) || 0)
  const [own, other] = [parts(version), parts(than)]
  const at = other.findIndex((part, index) => (own[index] ?? 0) !== part)
  return at !== -1 && (own[at] ?? 0) < (other[at] ?? 0)
}
