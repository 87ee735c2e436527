/**
 * Text of a worker file -> its front matter as plain data, and its body. Pure, and safe against hostile text.
 *
 * gray-matter finds the fences and cuts the text there. By itself it also runs JavaScript front matter on the host (`---js`), even when
 * the language is set to YAML, and shares parsed data between callers unless it gets an options object. So the opening fence is
 * compared before gray-matter sees the text (exactly `---`, which names no language), each of its engines is replaced, and what it cut
 * out is parsed by the one YAML reader (config/yaml.ts).
 */
import matter from 'gray-matter'
import { type KeyLines, readYaml, type YamlProblem } from '../config/yaml.ts'
import { quoteText } from '../text/units.ts'
import { invalidWorker } from './problem.ts'
import { codePointName } from './shell-words.ts'
import type { Warning } from './worker.ts'

export interface FrontMatter {
  /** Plain data; an empty mapping for empty front matter. */
  readonly value: unknown
  /** The text after the front matter. */
  readonly body: string
  /** Dotted key -> line of the file, from 1. */
  readonly lines: KeyLines
  readonly warnings: readonly Warning[]
}

interface Source {
  readonly file: string
  readonly text: string
}

/** Largest file that is read, in bytes. */
export const LARGEST_FILE = 1024 ** 2
/** No worker nests half as deep; a profile, which may hold more, has 64. */
const MOST_LEVELS = 32
/** gray-matter looks for comments by a pattern that takes quadratic time in a run of empty lines. */
const MOST_EMPTY_LINES = 100
const FENCE = '---'

/**
 * Reads a file that begins with front matter.
 * @param knownKeys top-level keys; an unquoted description that is not YAML ends before the next one of them
 * @throws SandboxError WORKER_INVALID with file, line, key, expected and got
 */
export function readFrontMatter({
  knownKeys,
  ...source
}: Source & { readonly knownKeys: readonly string[] }): FrontMatter {
  const { file } = source
  const text = textOf(source)
  refuseUnlessFenced(file, text)
  const { yaml, body } = split(file, text)
  return { ...readLeniently({ file, yaml, firstLine: 2, knownKeys }), body }
}

/** Reads a file that is YAML as a whole. */
export function readYamlFile(source: Source): FrontMatter {
  const yaml = textOf(source).split('\n')
  return { ...parse({ file: source.file, yaml, firstLine: 1 }), body: '', warnings: [] }
}

/** Without byte order mark, every line ended by a line feed. */
function textOf({ file, text }: Source): string {
  if (Buffer.byteLength(text) > LARGEST_FILE) {
    const got = `${Buffer.byteLength(text)} bytes`
    throw invalidWorker([{ file, key: '', expected: `at most ${LARGEST_FILE} bytes`, got }])
  }
  return text.replace(/^\uFEFF/, '').replaceAll('\r\n', '\n')
}

/** Refused before gray-matter sees it: an opening fence that names a language, and more empty lines than it can take. */
function refuseUnlessFenced(file: string, text: string): void {
  const [first = '', ...rest] = text.split('\n')
  if (first !== FENCE)
    throw invalidWorker([
      { file, line: 1, key: '', expected: `a first line that is exactly ${FENCE}`, got: quoteText(first) },
    ])
  let run = 0
  for (const [index, line] of rest.entries()) {
    if (line.startsWith(FENCE)) return
    run = line.trim() === '' ? run + 1 : 0
    if (run > MOST_EMPTY_LINES) {
      const expected = `at most ${MOST_EMPTY_LINES} empty lines in a row`
      throw invalidWorker([{ file, line: index + 2, key: '', expected, got: 'more' }])
    }
  }
}

const refuseLanguage = () => {
  throw new TypeError('front matter in a language other than YAML')
}
/** Every engine that gray-matter has; its types do not show them. */
const ENGINES = Object.keys((matter as unknown as { readonly engines: Readonly<Record<string, unknown>> }).engines)
const OPTIONS = {
  language: 'yaml',
  engines: {
    ...Object.fromEntries(ENGINES.map((name) => [name, { parse: refuseLanguage }])),
    // The text is parsed when the closing fence has been checked. gray-matter looks for certain keys in the value that an engine returns.
    yaml: { parse: () => ({}) },
  },
}

/** The lines between the fences, and what follows the second one. */
function split(file: string, text: string): { readonly yaml: readonly string[]; readonly body: string } {
  const { matter: between } = matter(text, OPTIONS)
  const end = FENCE.length + between.length
  if (end === text.length)
    throw invalidWorker([
      { file, line: 1, key: '', expected: `a line ${FENCE} that ends the front matter`, got: 'the end of the file' },
    ])
  const yaml = between.split('\n').slice(1)
  const [closing = '', ...body] = text.slice(end + 1).split('\n')
  if (closing.trimEnd() === FENCE) return { yaml, body: body.join('\n') }
  const expected = `exactly ${FENCE}, to end the front matter`
  throw invalidWorker([{ file, line: yaml.length + 2, key: '', expected, got: quoteText(closing) }])
}

type Read = Omit<FrontMatter, 'body'>
interface Piece {
  readonly file: string
  readonly yaml: readonly string[]
  /** Of the file, from 1, where the YAML begins. */
  readonly firstLine: number
}

/** As it is; if that fails because of an unquoted description, with only the description taken as plain text. */
function readLeniently({ knownKeys, ...piece }: Piece & { readonly knownKeys: readonly string[] }): Read {
  try {
    return { ...parse(piece), warnings: [] }
  } catch (error) {
    const quoted = quoteDescription(piece.yaml, knownKeys)
    if (quoted === undefined) throw error
    return { ...parseOr(error, { ...piece, yaml: quoted.yaml }), warnings: [lenient(piece.file, quoted.line)] }
  }
}

/** Where something else is wrong too, the first error is the one to report. */
function parseOr(error: unknown, piece: Piece): Omit<Read, 'warnings'> {
  try {
    return parse(piece)
  } catch {
    throw error
  }
}

function lenient(file: string, line: number): Warning {
  const message = 'it is not valid YAML without quotes; it was taken as plain text. Put it in quotes.'
  return { code: 'W_LENIENT', file, line, key: 'description', message }
}

/** The front matter with its description in quotes, on as many lines as before; undefined when it has none without quotes. */
function quoteDescription(
  yaml: readonly string[],
  knownKeys: readonly string[],
): { readonly yaml: readonly string[]; readonly line: number } | undefined {
  const at = yaml.findIndex((line) => line.startsWith('description:'))
  const start = yaml[at]?.slice('description:'.length).trim() ?? ''
  // A value that begins like this is quoted, a block, a list or the like, and must be valid as that.
  if (start === '' || /^["'|>[\]{}&*!%@`#-]/.test(start)) return undefined
  const length = yaml.slice(at + 1).findIndex((line) => knownKeys.some((key) => line.startsWith(`${key}:`)))
  const rest = length < 0 ? yaml.slice(at + 1) : yaml.slice(at + 1, at + 1 + length)
  const text = [start, ...rest.map((line) => line.trim())].join(' ').trim()
  const filler = rest.map(() => '')
  const quoted = [`description: ${JSON.stringify(text)}`, ...filler]
  return { yaml: [...yaml.slice(0, at), ...quoted, ...yaml.slice(at + 1 + rest.length)], line: at + 2 }
}

/** YAML -> plain data with the line of every key. */
function parse({ file, yaml, firstLine }: Piece): Omit<Read, 'warnings'> {
  refuseControls({ file, yaml, firstLine })
  const reading = readYaml(yaml.join('\n'), { levels: MOST_LEVELS, firstLine })
  if (reading.ok) return { value: reading.value ?? {}, lines: reading.lines }
  throw invalidWorker([placed({ file, yaml, firstLine }, reading)])
}

const placed = ({ file, yaml, firstLine }: Piece, { line, key, expected, got }: YamlProblem) => ({
  file,
  line,
  key: key ?? keyBefore(yaml, line - firstLine),
  expected,
  got,
})

const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\ud800-\udfff]/u
const RETURN = /\r/

function refuseControls({ file, yaml, firstLine }: Piece): void {
  for (const [index, line] of yaml.entries()) {
    const found = CONTROL.exec(line) ?? RETURN.exec(line)
    if (found === null) continue
    const got = `the control character ${codePointName(found[0])}`
    throw invalidWorker([
      { file, line: firstLine + index, key: keyBefore(yaml, index), expected: 'printable text', got },
    ])
  }
}

/** The top-level key that a line belongs to, as far as it can be seen without parsing. */
function keyBefore(yaml: readonly string[], index: number): string {
  const line = yaml.slice(0, index + 1).findLast((candidate) => /^[A-Za-z_][\w.-]*\s*:/.test(candidate))
  return line === undefined ? '' : line.slice(0, line.indexOf(':')).trim()
}
