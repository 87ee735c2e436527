/** The manual page in the Markdown of pandoc, for people who read docs/, and in roff with the macros of man(7), for man(1). Pure. */
import { wrapped } from '../text/wrapped.ts'

/** Words in one face. */
export interface Span {
  readonly face: 'roman' | 'bold' | 'italic'
  readonly text: string
}

/** A string is taken as it is. */
export type Text = string | readonly Span[]

export type Block =
  | { readonly kind: 'section'; readonly title: string }
  | { readonly kind: 'subsection'; readonly title: string }
  | { readonly kind: 'paragraph'; readonly lines: readonly Text[] }
  | { readonly kind: 'entry'; readonly term: Text; readonly text: string }
  | { readonly kind: 'example'; readonly lines: readonly string[] }

/** `**bold**` and `*italic*` in what is written by hand. */
export function marked(text: string): readonly Span[] {
  return text
    .split(/(\*\*[^*]+\*\*|\*[^*]+\*)/)
    .filter((part) => part !== '')
    .map((part) => {
      if (part.startsWith('**')) return { face: 'bold', text: part.slice(2, -2) }
      if (part.startsWith('*')) return { face: 'italic', text: part.slice(1, -1) }
      return { face: 'roman', text: part }
    })
}

const spansOf = (text: Text): readonly Span[] => (typeof text === 'string' ? [{ face: 'roman', text }] : text)

/* ---- Markdown ---- */

/** Characters that mean something there; two hyphens would become a dash. */
const plain = (text: string) => text.replace(/[*_[\]<>\\$]|--/g, '\\$&')

const MARKDOWN_FACES = { roman: '', italic: '*', bold: '**' } as const

const inMarkdown = (text: Text) =>
  spansOf(text)
    .map((span) => `${MARKDOWN_FACES[span.face]}${plain(span.text)}${MARKDOWN_FACES[span.face]}`)
    .join('')

export const filled = (text: string, indent?: string) => wrapped(text.split(' '), { width: 120, indent }).join('\n')

function markdownBlock(block: Block): string {
  if (block.kind === 'section') return `# ${block.title}\n`
  if (block.kind === 'subsection') return `## ${block.title}\n`
  if (block.kind === 'paragraph') return `${filled(block.lines.map(inMarkdown).join(' '))}\n`
  if (block.kind === 'example') return `${block.lines.map((line) => `    ${line}`).join('\n')}\n`
  return `${filled(inMarkdown(block.term))}\n${filled(`:   ${plain(block.text)}`, '    ')}\n`
}

/** @param origin where the text comes from, for people who would edit it */
export function markdownPage(name: string, blocks: readonly Block[], origin: string): string {
  const head = [`% ${name.toUpperCase()}(1) | User Commands\n`, `<!-- ${origin} -->\n`]
  return [...head, ...blocks.map(markdownBlock)].join('\n')
}

/* ---- roff ---- */

/** groff_char(7): what a terminal shows as another character than the one that was typed. */
const GLYPHS: Readonly<Record<string, string>> = {
  '\\': '\\e',
  '-': '\\-',
  "'": '\\(aq',
  '`': '\\(ga',
  '^': '\\(ha',
  '~': '\\(ti',
}
const glyphs = (text: string) => text.replace(/[\\\-'`^~]/g, (found) => GLYPHS[found] ?? found)

/** A line that begins with a dot would be a request. */
const asText = (line: string) => (line.startsWith('.') ? `\\&${line}` : line)

const ROFF_FACES = { roman: '', italic: '\\fI', bold: '\\fB' } as const

const inRoff = (text: Text) =>
  spansOf(text)
    .map(({ face, text }) => (face === 'roman' ? glyphs(text) : `${ROFF_FACES[face]}${glyphs(text)}\\fR`))
    .join('')

/** mandoc's lint wants short lines in the source; where they end means nothing to a reader. */
function roffLines(text: string): string {
  const lines = text.match(/\S.{0,77}(?=\s|$)|\S+/g) ?? []
  return lines.map((line) => asText(line.trim())).join('\n')
}

const roffHeading = (macro: string, title: string) => `.${macro} "${glyphs(title)}"`

function roffBlock(block: Block): string {
  if (block.kind === 'section') return roffHeading('SH', block.title)
  if (block.kind === 'subsection') return roffHeading('SS', block.title)
  if (block.kind === 'paragraph') return `.PP\n${roffLines(block.lines.map(inRoff).join(' '))}`
  if (block.kind === 'example') return `.PP\n.EX\n${block.lines.map((line) => asText(glyphs(line))).join('\n')}\n.EE`
  return `.TP\n${asText(inRoff(block.term))}\n${roffLines(glyphs(block.text))}`
}

/** A paragraph macro directly behind a heading says nothing, and mandoc's lint says so. */
const withoutEmptyParagraphs = (page: string) => page.replace(/^(\.S[HS] .*)\n\.PP$/gm, '$1')

/** @param release what the footer shows, with the date of it */
export function roffPage(name: string, blocks: readonly Block[], release: { version: string; date: string }): string {
  const title = `.TH ${glyphs(name.toUpperCase())} 1 "${release.date}" "${glyphs(`${name} ${release.version}`)}" "User Commands"`
  return withoutEmptyParagraphs([title, ...blocks.map(roffBlock), ''].join('\n'))
}
