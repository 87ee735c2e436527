/**
 * Untrusted YAML -> plain data with the line of every key. Pure. The only reader of YAML: profiles, workers, workshops and filter files.
 *
 * The parser itself has no bounds: a megabyte of brackets takes it seven seconds, closing them overflows its stack, and nested explicit
 * keys (`? ? ?`) take longer still. So length and depth are measured on the tokens before anything is parsed.
 * YAML 1.2, core schema: no tags that make objects, no merge keys, `yes` and `on` are text. One document, no duplicate keys, keys are
 * plain words. A directive is refused because it can change the language: after `%YAML 1.1`, `no` is false.
 */
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
  parseDocument,
  visit,
  type YAMLError,
} from 'yaml'
import { quoteText } from '../text/units.ts'

/** Dotted key -> line, from 1; list elements by position. The value of an alias has the line of the alias. */
export type KeyLines = Readonly<Record<string, number>>

export interface YamlData {
  readonly ok: true
  readonly value: unknown
  readonly lines: KeyLines
}

export interface YamlProblem {
  readonly ok: false
  /** Completes "expected ..."; `got` completes "got ...". */
  readonly expected: string
  readonly got: string
  /** The problem as one sentence, in the parser's words where the parser found it. */
  readonly reason: string
  readonly line: number
  readonly column?: number
  /** Dotted; empty for the whole text, absent where the reader does not know it. */
  readonly key?: string
}

export interface YamlOptions {
  /** Deepest nesting of mappings and lists. A worker needs less than a profile, see the callers. */
  readonly levels?: number
  /** Line of the file on which the text begins. */
  readonly firstLine?: number
}

/** Deeper than any policy, far from the end of the parser's stack. */
const MOST_LEVELS = 64
/** Some four thousand lines. The parser's time grows with the square of the number of keys, aliases and errors. */
export const MOST_TOKENS = 16_384
/** Columns of indentation; every level of a block needs at least one. */
const WIDEST_INDENT = 256
/** More aliases than people write, fewer than it takes to exhaust memory. */
const MOST_ALIASES = 64

export function readYaml(
  text: string,
  { levels = MOST_LEVELS, firstLine = 1 }: YamlOptions = {},
): YamlData | YamlProblem {
  const reading = readFromFirstLine(text, levels)
  const offset = firstLine - 1
  if (!reading.ok) return { ...reading, line: reading.line + offset }
  const lines = Object.entries(reading.lines).map(([key, line]) => [key, line + offset] as const)
  return { ...reading, lines: Object.fromEntries(lines) }
}

function readFromFirstLine(text: string, levels: number): YamlData | YamlProblem {
  const excess = excessOf(text, levels)
  if (excess !== undefined) return excess
  const counter = new LineCounter()
  const document = parseDocument(text, {
    version: '1.2',
    schema: 'core',
    uniqueKeys: true,
    strict: true,
    prettyErrors: false,
    lineCounter: counter,
  }) as Document
  // Warnings are errors: the author of an unknown tag expects something other than plain data.
  const parserError = document.errors[0] ?? document.warnings[0]
  if (parserError !== undefined) return parserProblem({ text, parserError, counter })
  return shapeProblem({ node: document.contents, counter, levels, key: '', depth: 0 }) ?? dataOf(document, counter)
}

type Location = Pick<YamlProblem, 'line' | 'column' | 'key'>

const problem = (location: Location, expected: string, got: string): YamlProblem => ({
  ok: false,
  ...location,
  expected,
  got,
  reason: `expected ${expected}, got ${got}`,
})

const EXPECTED_PLAIN_KEYS = 'keys that are plain words'
const nesting = (levels: number): string => `nesting of at most ${levels} levels`

/** Where the text becomes too long or too deep for the parser, or is YAML that nothing here needs. */
function excessOf(text: string, levels: number): YamlProblem | undefined {
  // flow: open brackets. indicators: dashes and colons of this line, outside brackets.
  let [tokens, line, flow, indicators, isLineStart] = [0, 1, 0, 0, true]
  for (const token of new Lexer().lex(text)) {
    const type = CST.tokenType(token)
    const location = { line, key: '' }
    if (type === 'explicit-key-ind') return problem(location, EXPECTED_PLAIN_KEYS, 'an explicit key (? ...)')
    if (type === 'directive-line') return problem(location, 'no directives', quoteText(token))
    if (type === 'flow-map-start' || type === 'flow-seq-start') flow += 1
    if (type === 'flow-map-end' || type === 'flow-seq-end') flow = Math.max(0, flow - 1)
    if (flow === 0 && (type === 'seq-item-ind' || type === 'map-value-ind')) indicators += 1
    if (token.includes('\n')) indicators = 0
    tokens += 1
    const isWide = isLineStart && type === 'space' && token.length > WIDEST_INDENT
    if (flow > levels || indicators > levels || isWide) return problem(location, nesting(levels), 'more')
    if (tokens > MOST_TOKENS) return problem(location, `at most ${MOST_TOKENS} words and signs`, 'more')
    isLineStart = token.endsWith('\n')
    line += token.split('\n').length - 1
  }
  return undefined
}

function parserProblem(input: {
  readonly text: string
  readonly parserError: YAMLError
  readonly counter: LineCounter
}): YamlProblem {
  const { text, parserError, counter } = input
  const at = counter.linePos(parserError.pos[0])
  const location = { line: at.line, column: at.col }
  const line = lineOf(text, at.line)
  const reason = parserError.message.split('\n')[0] ?? ''
  if (parserError.code === 'DUPLICATE_KEY') {
    const key = /^\s*(?:- )?([^:]+):/.exec(line)?.[1]?.trim()
    const found = problem({ ...location, ...(key === undefined ? {} : { key }) }, 'every key once', 'it a second time')
    return { ...found, reason }
  }
  const expected = parserError.code === 'TAG_RESOLVE_FAILED' ? 'plain YAML without tags' : 'valid YAML'
  return { ...problem(location, expected, `${quoteText(line.trim())} (${reason})`), reason }
}

/** The parser's position may be behind the last line. */
function lineOf(text: string, line: number): string {
  const lines = text.split('\n')
  return lines[Math.min(line, lines.length) - 1] ?? ''
}

interface Walk {
  readonly node: unknown
  readonly counter: LineCounter
  /** Dotted. */
  readonly key: string
}

/** Indentation can nest too, and a key can be a mapping or a list. */
function shapeProblem(walk: Walk & { readonly levels: number; readonly depth: number }): YamlProblem | undefined {
  const { node, counter, key, levels, depth } = walk
  const location = { line: counter.linePos(startOf(node)).line, key }
  if (depth > levels) return problem(location, nesting(levels), 'more')
  if (isMap(node) && node.items.some((pair) => !isScalar(pair.key)))
    return problem(location, EXPECTED_PLAIN_KEYS, 'a key that is a list or mapping')
  for (const child of childrenOf(node)) {
    const inner = { ...walk, node: child.node, key: dotted(key, child.name), depth: depth + 1 }
    const found = shapeProblem(inner)
    if (found !== undefined) return found
  }
  return undefined
}

function dataOf(document: Document, counter: LineCounter): YamlData | YamlProblem {
  try {
    const value: unknown = document.toJS({ maxAliasCount: MOST_ALIASES })
    return { ok: true, value, lines: Object.fromEntries(linesOf({ node: document.contents, counter, key: '' })) }
  } catch (error) {
    if (!(error instanceof ReferenceError)) throw error
    return aliasProblem(document, counter)
  }
}

/** The first alias without an anchor, else the last alias of all: with that one it became too much. */
function aliasProblem(document: Document, counter: LineCounter): YamlProblem {
  const aliases: Alias[] = []
  visit(document, { Alias: (_key, node) => void aliases.push(node) })
  const lost = aliases.find((alias) => alias.resolve(document) === undefined)
  const { line } = counter.linePos(startOf(lost ?? aliases.at(-1)))
  if (lost !== undefined) return problem({ line }, 'an anchor for every alias', 'an alias without one')
  return problem({ line }, `at most ${MOST_ALIASES} values by aliases`, 'more, by aliases of aliases')
}

function linesOf({ node, counter, key }: Walk): readonly (readonly [string, number])[] {
  return childrenOf(node).flatMap((child) => {
    const inner = dotted(key, child.name)
    return [[inner, counter.linePos(child.at).line] as const, ...linesOf({ node: child.node, counter, key: inner })]
  })
}

const dotted = (key: string, part: string): string => (key === '' ? part : `${key}.${part}`)

function childrenOf(node: unknown): readonly { readonly name: string; readonly at: number; readonly node: unknown }[] {
  if (isMap(node)) {
    const pairs = node.items.flatMap(({ key, value }) => (isScalar(key) ? [{ key, value }] : []))
    return pairs.map(({ key, value }) => ({ name: String(key.value), at: startOf(key), node: value }))
  }
  if (!isSeq(node)) return []
  return node.items.map((item, index) => ({ name: String(index), at: startOf(item), node: item }))
}

function startOf(node: unknown): number {
  return isMap(node) || isSeq(node) || isScalar(node) || isAlias(node) ? (node.range?.[0] ?? 0) : 0
}
