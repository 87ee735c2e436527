/** Our pages may load nothing and run no script but their own, so a text that became markup by mistake would still not run. Pure. */
import { createHash } from 'node:crypto'

/** @param html with one element `script` and one `style` without attributes, which the rules name by their checksums */
export function pagePolicy(html: string, more: readonly string[] = []): string {
  const sumOf = (element: 'script' | 'style'): string => {
    const [, text = ''] = new RegExp(`<${element}>([\\s\\S]*?)</${element}>`).exec(html) ?? []
    return `'sha256-${createHash('sha256').update(text).digest('base64')}'`
  }
  return [
    "default-src 'none'",
    `script-src ${sumOf('script')}`,
    `style-src ${sumOf('style')}`,
    "base-uri 'none'",
    "form-action 'none'",
    ...more,
  ].join('; ')
}
