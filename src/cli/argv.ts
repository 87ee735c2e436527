/**
 * The words of our own command line, exact to the byte. Node decodes argv as UTF-8 and puts U+FFFD where it is not, so a
 * file name in Latin-1 would reach the command changed. Linux still has the bytes.
 *
 * Edge: process.argv, /proc/self/cmdline.
 */
import { readFileSync } from 'node:fs'

export interface Words {
  /** As node gives them: exact when `bytes` is absent, else good for messages only. */
  readonly text: readonly string[]
  /** The same words as bytes; present only when one of them is not UTF-8. */
  readonly bytes?: readonly Uint8Array[]
}

/** What node writes for bytes that are not UTF-8; a caller may also have typed it. */
const REPLACEMENT = '\ufffd'

/** The words from `start` on. */
export function wordsFrom({ text, bytes }: Words, start: number): Words {
  return { text: text.slice(start), ...(bytes && { bytes: bytes.slice(start) }) }
}

/**
 * Pairs decoded words with their bytes.
 * @param commandLine content of /proc/self/cmdline: every word ended by NUL, those of node before ours
 */
export function exactWords(text: readonly string[], commandLine: Uint8Array): Words {
  const raw = Buffer.from(commandLine.buffer, commandLine.byteOffset, commandLine.byteLength)
  const all: Uint8Array[] = []
  for (let start = 0; start < raw.length; ) {
    const end = raw.indexOf(0, start)
    all.push(raw.subarray(start, end === -1 ? raw.length : end))
    start = end === -1 ? raw.length : end + 1
  }
  const bytes = all.slice(Math.max(0, all.length - text.length))
  const isSame =
    bytes.length === text.length && text.every((word, index) => Buffer.from(word).equals(bytes[index] ?? raw))
  return isSame || bytes.length !== text.length ? { text } : { text, bytes }
}

/** Our words, without node and the script. */
export function readWords(): Words {
  const text = process.argv.slice(2)
  if (!text.some((word) => word.includes(REPLACEMENT))) return { text }
  try {
    return exactWords(text, readFileSync('/proc/self/cmdline'))
  } catch {
    return { text } // No /proc: nothing better is known than what node decoded.
  }
}
