/** Parts of documents that are made from the code: between two marker lines of a page. `make golden` rewrites them. */
import { readFileSync, writeFileSync } from 'node:fs'
import { expect } from 'vitest'
import { filled } from '../../src/cli/man-formats.ts'
import { isWritingGoldens } from './golden.ts'

const ROOT = new URL('../../', import.meta.url)

/** A text with the part between `<!-- NAME: ... -->` and `<!-- end of NAME -->` replaced. */
export function withPart(text: string, name: string, content: string): string {
  const begin = text.indexOf('\n', text.indexOf(`<!-- ${name}:`)) + 1
  return `${text.slice(0, begin)}${content}\n${text.slice(text.indexOf(`<!-- end of ${name} -->`))}`
}

export function expectFile(path: string, wanted: (current: string) => string): void {
  const file = new URL(path, ROOT)
  if (isWritingGoldens()) writeFileSync(file, wanted(readFileSync(file, { encoding: 'utf8', flag: 'a+' })))
  const current = readFileSync(file, 'utf8')
  expect(current).toBe(wanted(current))
}

/** An item of a list, on lines as long as those of the documents. */
export const listItem = (text: string): string => filled(`* ${text}`, '  ')
