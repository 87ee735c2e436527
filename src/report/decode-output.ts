/** Captured bytes -> the text of a result. */
import type { Capture } from '../backends/outcome.ts'
import { utf8In } from '../text/utf8.ts'

/** Both streams as they stand in a result. */
export interface DecodedOutput {
  readonly stdout: string
  readonly stderr: string
  readonly encoding: 'utf8' | 'base64'
  /** Bytes that are missing in the middle of each stream. */
  readonly truncated: { readonly stdout: number; readonly stderr: number }
}

/** The longest character of UTF-8 has four bytes, so a cut leaves at most three of one character on a side. */
const LONGEST_REMNANT = 3

/** How many bytes at the end of `head` belong to a character that the cut went through. */
export function brokenEnd(head: Uint8Array): number {
  for (let back = 1; back <= Math.min(LONGEST_REMNANT, head.length); back += 1) {
    const byte = head[head.length - back] as number
    if ((byte & 0xc0) === 0x80) continue
    const wanted = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
    return wanted > back ? back : 0
  }
  return 0
}

/** How many bytes at the start of `tail` belong to such a character. */
export function brokenStart(tail: Uint8Array): number {
  const first = tail.findIndex((byte) => (byte & 0xc0) !== 0x80)
  const remnant = first === -1 ? tail.length : first
  return remnant <= LONGEST_REMNANT ? remnant : 0
}

interface Kept {
  readonly bytes: Uint8Array
  readonly dropped: number
}

function keep(capture: Capture, headEnd: number, tailStart: number): Kept {
  const head = capture.head.subarray(0, headEnd)
  const tail = capture.tail.subarray(tailStart)
  return {
    bytes: tail.length === 0 ? head : Buffer.concat([head, tail]),
    dropped: capture.bytes - head.length - tail.length,
  }
}

/** Only where bytes were dropped: a stream that is complete and ends inside a character is simply not UTF-8. */
function keepWholeCharacters(capture: Capture): Kept {
  const cut = capture.bytes > capture.head.length + capture.tail.length
  if (!cut) return keep(capture, capture.head.length, 0)
  return keep(capture, capture.head.length - brokenEnd(capture.head), brokenStart(capture.tail))
}

function asBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
}

/**
 * The output as text, or both streams as base64 when one of them is not valid UTF-8. Where the cap cut through a
 * character, its remains are dropped and counted too: our cut never makes text look binary.
 */
export function decodeOutput(stdout: Capture, stderr: Capture): DecodedOutput {
  const [out, err] = [keepWholeCharacters(stdout), keepWholeCharacters(stderr)]
  const [outText, errText] = [utf8In(out.bytes), utf8In(err.bytes)]
  if (outText !== undefined && errText !== undefined) {
    return {
      stdout: outText,
      stderr: errText,
      encoding: 'utf8',
      truncated: { stdout: out.dropped, stderr: err.dropped },
    }
  }
  const [rawOut, rawErr] = [keep(stdout, stdout.head.length, 0), keep(stderr, stderr.head.length, 0)]
  return {
    stdout: asBase64(rawOut.bytes),
    stderr: asBase64(rawErr.bytes),
    encoding: 'base64',
    truncated: { stdout: rawOut.dropped, stderr: rawErr.dropped },
  }
}
