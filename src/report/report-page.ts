/**
 * The page of `llm-do report`: HTML, style and script in one file, around the runs as JSON. It loads nothing.
 * Edge: the page's file.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pagePolicy } from '../text/page-policy.ts'

export interface ReportPage {
  readonly head: string
  readonly tail: string
}

/** In dist/ it lies next to the program, in the sources next to this file. */
export function readReportPage(file = join(import.meta.dirname, 'report-page.html')): ReportPage {
  const html = readFileSync(file, 'utf8')
  const [head = '', tail = ''] = html.replace('@POLICY@', pagePolicy(html)).split('"@RUNS@"')
  return { head, tail }
}

/** JSON that ends no element and starts no comment in HTML. */
export const jsonInHtml = (value: unknown): string => JSON.stringify(value).replaceAll('<', '\\u003c')
