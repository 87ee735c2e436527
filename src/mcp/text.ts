/** Bytes of a command as text for a model. Pure. */
import { brokenEnd, brokenStart } from '../core.ts'

export interface ShownText {
  readonly text: string
  /** Some bytes are not UTF-8, and stand as U+FFFD. */
  readonly isLossy: boolean
}

export function textOf(bytes: Uint8Array): ShownText {
  try {
    return { text: decode(bytes, true), isLossy: false }
  } catch {
    return { text: decode(bytes, false), isLossy: true } // The decoder has one way to say "not UTF-8", and it is to throw.
  }
}

const decode = (bytes: Uint8Array, fatal: boolean): string =>
  new TextDecoder('utf-8', { fatal, ignoreBOM: true }).decode(bytes)

/** Without what a cut at the end has left of a character. */
export const wholeAtEnd = (bytes: Uint8Array): Uint8Array => bytes.subarray(0, bytes.length - brokenEnd(bytes))
/** Without what a cut at the start has left of one. */
export const wholeAtStart = (bytes: Uint8Array): Uint8Array => bytes.subarray(brokenStart(bytes))
