/** Bytes as text. Pure. */

/** A byte order mark stays a character. @returns undefined when the bytes are not UTF-8 */
export function utf8In(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined // The decoder has one way to say "not UTF-8", and it is to throw.
  }
}
