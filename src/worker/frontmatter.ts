/**
 * Text of a worker file -> its front matter as plain data, and its body. Pure, and safe against hostile text.
 *
 * gray-matter splits and dispatches, but by itself it runs JavaScript front matter on the host (`---js`), also when it is told
 * that the language is YAML, and it shares parsed data between callers unless it gets an options object. So every engine
 * it has is replaced by one that throws, YAML is read by the `yaml` package, and the fences are checked before it sees them:
 * the first line is exactly `---`, and so is the line that closes.
 */
import matter from 'gray-matter'
import {
  type Alias,
  CST,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Node,
  parseDocument,
  visit,
  type YAMLError,
} from 'yaml'
import { quoteText } from '../unit.ts'
import { invalidWorker, type Problem } from './problem.ts'
import type { Warning } from './worker.ts'

export interface FrontMatter {
  /** Plain data; an empty mapping for empty front matter. */
  readonly value: unknown
  /** What follows the front matter. */
  readonly body: string
  /** Dotted key -> line of the file, from 1. */
  readonly lines: Readonly<Record<string, number>>
  readonly warnings: readonly Warning[]
}

interface Source {
  readonly file: string
  readonly text: string
}

/** Largest file that is read, in bytes. */
export const LARGEST_FILE = 1024 ** 2
/** Far deeper than any worker, far from the end of the parser's stack. */
const DEEPEST = 32
/** Tokens of YAML, some ten a line: more than any worker has, few enough to be parsed in a moment. */
const MOST_TOKENS = 50_000
/** More aliases than people write, fewer than it takes to blow up. */
const MOST_ALIASES = 64
/** gray-matter looks for comments by a pattern that is quadratic in a run of empty lines. */
const MOST_EMPTY_LINES = 100

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
  const lines = linesOf(source)
  const [first = ''] = lines
  if (first !== '---') {
    throw invalidWorker([
      { file, line: 1, key: '', expected: 'a first line that is exactly ---', got: quoteText(first) },
    ])
  }
  const end = closingFence(file, lines)
  const yaml = lines.slice(1, end)
  const body = lines.slice(end + 1).join('\n')
  refuseEmptyRun(file, yaml)
  const read = readLeniently({ file, yaml, knownKeys })
  return { ...read, body }
}

/** Reads a file that is YAML as a whole. */
export function readYaml(source: Source): FrontMatter {
  const yaml = linesOf(source)
  return { ...parse({ file: source.file, yaml, firstLine: 1 }), body: '', warnings: [] }
}

/** Lines without their ends; a byte order mark and carriage returns are taken away. */
function linesOf({ file, text }: Source): readonly string[] {
  if (Buffer.byteLength(text) > LARGEST_FILE) {
    const got = `${Buffer.byteLength(text)} bytes`
    throw invalidWorker([{ file, key: '', expected: `at most ${LARGEST_FILE} bytes`, got }])
  }
  return text.replace(/^\uFEFF/, '').split(/\r?\n/)
}

function closingFence(file: string, lines: readonly string[]): number {
  const at = lines.findIndex((line, index) => index > 0 && line.startsWith('---'))
  if (at < 0) {
    throw invalidWorker([
      { file, line: 1, key: '', expected: 'a line --- that ends the front matter', got: 'the end of the file' },
    ])
  }
  const line = lines[at] ?? ''
  if (line.trimEnd() !== '---') {
    throw invalidWorker([
      { file, line: at + 1, key: '', expected: 'exactly ---, to end the front matter', got: quoteText(line) },
    ])
  }
  return at
}

function refuseEmptyRun(file: string, yaml: readonly string[]): void {
  let run = 0
  for (const [index, line] of yaml.entries()) {
    run = line.trim() === '' ? run + 1 : 0
    if (run > MOST_EMPTY_LINES) {
      const expected = `at most ${MOST_EMPTY_LINES} empty lines in a row`
      throw invalidWorker([{ file, line: index + 2, key: '', expected, got: 'more' }])
    }
  }
}

type Read = Omit<FrontMatter, 'body'>
interface Piece {
  readonly file: string
  readonly yaml: readonly string[]
}

/** As it is; if that fails because of an unquoted description, with only the description taken as plain text. */
function readLeniently({ knownKeys, ...piece }: Piece & { readonly knownKeys: readonly string[] }): Read {
  try {
    return { ...split(piece), warnings: [] }
  } catch (error) {
    const quoted = quoteDescription(piece.yaml, knownKeys)
    if (quoted === undefined) throw error
    return { ...splitOr(error, { ...piece, yaml: quoted.yaml }), warnings: [lenient(piece.file, quoted.line)] }
  }
}

/** What is wrong beside the description is told as it was found first. */
function splitOr(error: unknown, piece: Piece): Omit<Read, 'warnings'> {
  try {
    return split(piece)
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
  // What begins like this is YAML of some other kind, and is to be read as that or not at all.
  if (start === '' || /^["'|>[\]{}&*!%@`#-]/.test(start)) return undefined
  const length = yaml.slice(at + 1).findIndex((line) => knownKeys.some((key) => line.startsWith(`${key}:`)))
  const rest = length < 0 ? yaml.slice(at + 1) : yaml.slice(at + 1, at + 1 + length)
  const text = [start, ...rest.map((line) => line.trim())].join(' ').trim()
  const filler = rest.map(() => '')
  const quoted = [`description: ${JSON.stringify(text)}`, ...filler]
  return { yaml: [...yaml.slice(0, at), ...quoted, ...yaml.slice(at + 1 + rest.length)], line: at + 2 }
}

/** Every engine that gray-matter has; its types do not show them. */
const ENGINES = Object.keys((matter as unknown as { readonly engines: Readonly<Record<string, unknown>> }).engines)

/** Hands the front matter through gray-matter, with our engine and no other. */
function split({ file, yaml }: Piece): Omit<Read, 'warnings'> {
  // A wrapper, not the data itself: gray-matter looks for keys of its own in what an engine returns.
  const engine = (text: string) => ({ read: parse({ file, yaml: text.replace(/^\n/, '').split('\n'), firstLine: 2 }) })
  const refuse = () => {
    throw invalidWorker([{ file, line: 1, key: '', expected: 'YAML front matter', got: 'another language' }])
  }
  const others = ENGINES.map((name) => [name, { parse: refuse }])
  const options = { language: 'yaml', engines: { ...Object.fromEntries(others), yaml: { parse: engine } } }
  const { data } = matter(`---\n${yaml.join('\n')}\n---\n`, options)
  return (data as Partial<ReturnType<typeof engine>>).read ?? { value: {}, lines: {} }
}

interface Text extends Piece {
  /** Of the file, from 1, where the YAML begins. */
  readonly firstLine: number
}

/** YAML -> plain data with the line of every key. */
function parse({ file, yaml, firstLine }: Text): Omit<Read, 'warnings'> {
  refuseControls({ file, yaml, firstLine })
  const text = yaml.join('\n')
  const counter = new LineCounter()
  const lineAt = (offset: number) => counter.linePos(offset).line + firstLine - 1
  refuseBulk({ file, text, firstLine })
  const document = parseDocument(text, {
    version: '1.2',
    schema: 'core',
    uniqueKeys: true,
    strict: true,
    prettyErrors: false,
    lineCounter: counter,
  }) as Document
  const trouble = document.errors[0] ?? document.warnings[0]
  if (trouble !== undefined) throw invalidWorker([yamlProblem({ file, yaml, firstLine, trouble, lineAt })])
  refuseShape({ file, node: document.contents, lineAt })
  return { value: plain({ file, yaml, firstLine, document, lineAt }) ?? {}, lines: keyLines(document.contents, lineAt) }
}

const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\ud800-\udfff]/u
const RETURN = /\r/

function refuseControls({ file, yaml, firstLine }: Text): void {
  for (const [index, line] of yaml.entries()) {
    const found = CONTROL.exec(line) ?? RETURN.exec(line)
    if (found === null) continue
    const got = `the control character U+${(found[0].codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`
    throw invalidWorker([
      { file, line: firstLine + index, key: keyBefore(yaml, index), expected: 'printable text', got },
    ])
  }
}

/**
 * Bounds the parser's work before it starts. Nested explicit keys (`? ? ?`) cost it time beyond all measure, deep nesting its
 * stack, a directive can change the language (`%YAML 1.1`: `no` is false); worker files need none of them.
 */
function refuseBulk({
  file,
  text,
  firstLine,
}: {
  readonly file: string
  readonly text: string
  readonly firstLine: number
}): void {
  let [tokens, flow, indicators, line] = [0, 0, 0, firstLine]
  const refuse = (expected: string, got: string) => invalidWorker([{ file, line, key: '', expected, got }])
  for (const token of new Lexer().lex(text)) {
    const type = CST.tokenType(token)
    if (type === 'explicit-key-ind') throw refuse('keys that are plain words', 'an explicit key (? ...)')
    if (type === 'directive-line') throw refuse('no directives', quoteText(token))
    if (type === 'flow-map-start' || type === 'flow-seq-start') flow += 1
    if (type === 'flow-map-end' || type === 'flow-seq-end') flow -= 1
    if (type === 'seq-item-ind' || type === 'map-value-ind') indicators += 1
    if (type === 'newline' && flow === 0) indicators = 0
    tokens += 1
    if (flow > DEEPEST || (flow === 0 && indicators > DEEPEST))
      throw refuse(`nesting of at most ${DEEPEST} levels`, 'more')
    if (tokens > MOST_TOKENS)
      throw refuse('a front matter of reasonable length', `more than ${MOST_TOKENS} words and signs`)
    line += countLines(token)
  }
}

function countLines(token: string): number {
  return token.split('\n').length - 1
}

function yamlProblem(
  input: Text & { readonly trouble: YAMLError; readonly lineAt: (offset: number) => number },
): Problem {
  const { file, yaml, firstLine, trouble, lineAt } = input
  const line = lineAt(trouble.pos[0])
  const index = Math.min(line - firstLine, yaml.length - 1)
  const key = keyBefore(yaml, index)
  if (trouble.code === 'DUPLICATE_KEY') {
    const own = /^\s*(?:- )?([^:]+):/.exec(yaml[index] ?? '')?.[1] ?? key
    return { file, line, key: own.trim(), expected: 'every key once', got: 'it a second time' }
  }
  const expected = trouble.code === 'TAG_RESOLVE_FAILED' ? 'plain YAML without tags' : 'valid YAML'
  const reason = trouble.message.split('\n')[0] ?? ''
  return { file, line, key, expected, got: `${quoteText((yaml[index] ?? '').trim())} (${reason})` }
}

/** The top-level key that a line belongs to, as far as it can be seen without parsing. */
function keyBefore(yaml: readonly string[], index: number): string {
  const line = yaml.slice(0, index + 1).findLast((candidate) => /^[A-Za-z_][\w.-]*\s*:/.test(candidate))
  return line === undefined ? '' : line.slice(0, line.indexOf(':')).trim()
}

interface Walk {
  readonly file: string
  readonly node: unknown
  readonly lineAt: (offset: number) => number
  readonly key?: string
  readonly depth?: number
}

/** Indentation can nest too, and a key can be a mapping or a list. */
function refuseShape({ file, node, lineAt, key = '', depth = 0 }: Walk): void {
  const line = lineAt((node as Node | null)?.range?.[0] ?? 0)
  if (depth > DEEPEST) {
    throw invalidWorker([{ file, line, key, expected: `nesting of at most ${DEEPEST} levels`, got: 'more' }])
  }
  if (isMap(node) && node.items.some((pair) => !isScalar(pair.key))) {
    throw invalidWorker([
      { file, line, key, expected: 'keys that are plain words', got: 'a key that is a list or mapping' },
    ])
  }
  for (const child of childrenOf(node)) {
    refuseShape({ file, node: child.node, lineAt, key: dotted(key, child.key), depth: depth + 1 })
  }
}

function plain({ file, yaml, firstLine, document, lineAt }: Plain): unknown {
  try {
    return document.toJS({ maxAliasCount: MOST_ALIASES })
  } catch (cause) {
    if (!(cause instanceof ReferenceError)) throw cause
    const { offset, isLost } = aliasAtFault(document)
    const line = lineAt(offset)
    const place = { file, line, key: keyBefore(yaml, line - firstLine) }
    if (isLost) throw invalidWorker([{ ...place, expected: 'an anchor for every alias', got: 'an alias without one' }])
    const expected = `at most ${MOST_ALIASES} values by aliases`
    throw invalidWorker([{ ...place, expected, got: 'more, by aliases of aliases' }])
  }
}

interface Plain extends Text {
  readonly document: Document
  readonly lineAt: (offset: number) => number
}

/** The first alias without anchor, else the last alias of all: with that one it became too much. */
function aliasAtFault(document: Document): { readonly offset: number; readonly isLost: boolean } {
  const aliases: Alias[] = []
  visit(document, { Alias: (_key, node) => void aliases.push(node) })
  const lost = aliases.find((alias) => alias.resolve(document) === undefined)
  return { offset: (lost ?? aliases.at(-1))?.range?.[0] ?? 0, isLost: lost !== undefined }
}

/** Aliases are not followed: their key's own line is told. */
function keyLines(node: unknown, lineAt: (offset: number) => number, key = ''): Readonly<Record<string, number>> {
  const own = childrenOf(node).map((child) => ({ ...child, key: dotted(key, child.key) }))
  return Object.assign(
    {},
    ...own.map((child) => ({ [child.key]: lineAt(child.at), ...keyLines(child.node, lineAt, child.key) })),
  )
}

function dotted(key: string, part: string): string {
  return key === '' ? part : `${key}.${part}`
}

function childrenOf(node: unknown): readonly { readonly key: string; readonly at: number; readonly node: unknown }[] {
  if (isAlias(node)) return []
  if (isMap(node)) {
    return node.items.flatMap(({ key, value }) =>
      isScalar(key) ? [{ key: String(key.value), at: key.range?.[0] ?? 0, node: value }] : [],
    )
  }
  if (!isSeq(node)) return []
  return node.items.map((item, index) => ({ key: String(index), at: (item as Node).range?.[0] ?? 0, node: item }))
}
