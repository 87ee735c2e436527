/**
 * The page: one file of HTML, style and script, which may load nothing else and run no other script.
 * Edge: the page's file.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pagePolicy } from '../../core.ts'

export interface Page {
  readonly html: string
  readonly contentSecurityPolicy: string
}

/** In dist/ it lies next to the program, in the sources next to this file. */
export function readPage(file = join(import.meta.dirname, 'fleet-page.html')): Page {
  const html = readFileSync(file, 'utf8')
  return { html, contentSecurityPolicy: pagePolicy(html, ["connect-src 'self'", "frame-ancestors 'none'"]) }
}
