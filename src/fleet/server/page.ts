/**
 * The page: one file of HTML, style and script, which may load nothing else and run no other script.
 * Edge: the page's file.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Page {
  readonly html: string
  /** Names the page's own script and style by their checksums, so a text that became markup by mistake would still not run. */
  readonly contentSecurityPolicy: string
}

/** In dist/ it lies next to the program, in the sources next to this file. */
export function readPage(file = join(import.meta.dirname, 'fleet-page.html')): Page {
  const html = readFileSync(file, 'utf8')
  const hashOf = (element: 'script' | 'style'): string => {
    const [, text = ''] = new RegExp(`<${element}>([\\s\\S]*?)</${element}>`).exec(html) ?? []
    return `'sha256-${createHash('sha256').update(text).digest('base64')}'`
  }
  const rules = [
    "default-src 'none'",
    `script-src ${hashOf('script')}`,
    `style-src ${hashOf('style')}`,
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ]
  return { html, contentSecurityPolicy: rules.join('; ') }
}
