/**
 * The page: one file of HTML, style and script, which may load nothing else and run no other script.
 * Edge: the page's file.
 */
import { readFileSync } from 'node:fs'
import { pagePolicy } from '../../core.ts'
import { fleetFile } from '../package-file.ts'

export interface Page {
  readonly html: string
  readonly contentSecurityPolicy: string
}

export function readPage(file = fleetFile('fleet-page.html', import.meta.dirname)): Page {
  const html = readFileSync(file, 'utf8')
  return { html, contentSecurityPolicy: pagePolicy(html, ["connect-src 'self'", "frame-ancestors 'none'"]) }
}
