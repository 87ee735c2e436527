/** Bytes of a command as text for a model. Pure. */
import { brokenEnd, brokenStart, utf8In } from '../core.ts'

export interface ShownText {
  readonly text: string
  /** Some bytes are not UTF-8, and stand as U+FFFD. */
  readonly isLossy: boolean
}

export function textOf(bytes: Uint8Array): ShownText {
  const text = utf8In(bytes)
  return text === undefined ? { text: LOSSY.decode(bytes), isLossy: true } : { text, isLossy: false }
}

const LOSSY = new TextDecoder('utf-8', { ignoreBOM: true })

/** Without what a cut at the end has left of a character. */
export const wholeAtEnd = (bytes: Uint8Array): Uint8Array => bytes.subarray(0, bytes.length - brokenEnd(bytes))
/** Without what a cut at the start has left of one. */
export const wholeAtStart = (bytes: Uint8Array): Uint8Array => bytes.subarray(brokenStart(bytes))
