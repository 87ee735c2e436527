/**
 * YAML from strangers -> plain data with line numbers. Pure, and bounded in time and memory: the parser itself is not
 * (a megabyte of brackets takes it seven seconds, and closing them ends the process), so depth is measured on the tokens first.
 * YAML 1.2 core schema: no tags that make objects, no merge keys, `yes` and `on` are words. One document, no duplicate keys.
 */
import { type Document, isAlias, isMap, isScalar, isSeq, Lexer, LineCounter, parseDocument } from 'yaml'

export type YamlReading =
  | {
      readonly ok: true
      readonly value: unknown
      /** Dotted key -> line, from 1; list elements by position. What an alias stands for has the line of the alias. */
      readonly lines: Readonly<Record<string, number>>
    }
  | { readonly ok: false; readonly reason: string; readonly line?: number; readonly column?: number }

/** Some four thousand lines. The parser's time grows with the square of the number of keys, aliases and errors. */
const MOST_TOKENS = 16_384
/** Deeper than any policy or worker, far from the end of the parser's stack. */
const DEEPEST = 64
/** Columns of indentation; every level of a block needs at least one. */
const WIDEST_INDENT = 256
/** More aliases than people write, fewer than it takes to blow up. */
const MOST_ALIASES = 64

export function readYaml(text: string): YamlReading {
  const excess = excessOf(text)
  if (excess !== undefined) return { ok: false, ...excess }
  const lineCounter = new LineCounter()
  const document = parseDocument(text, {
    version: '1.2',
    schema: 'core',
    uniqueKeys: true,
    strict: true,
    prettyErrors: true,
    lineCounter,
  })
  return troubleOf(document) ?? dataOf(document as Document, lineCounter)
}

/** Where the text becomes too long or too deep for the parser; undefined when it does not. */
function excessOf(text: string): { readonly reason: string; readonly line: number } | undefined {
  const seen = { tokens: 0, line: 1, flow: 0, markers: 0 }
  for (const token of new Lexer().lex(text)) {
    const isIndent = seen.markers === 0 && /^ +$/.test(token)
    const isMarker = token === '-' || token === '?'
    seen.tokens += 1
    seen.line += newlinesIn(token)
    seen.flow = Math.max(0, seen.flow + (FLOW_STEP[token] ?? 0))
    seen.markers = token.includes('\n') ? 0 : seen.markers + (isMarker ? 1 : 0)
    const isDeep = seen.flow > DEEPEST || seen.markers > DEEPEST || (isIndent && token.length > WIDEST_INDENT)
    if (isDeep) return { reason: `expected at most ${DEEPEST} levels of nesting, got more`, line: seen.line }
    if (seen.tokens > MOST_TOKENS)
      return { reason: `expected at most ${MOST_TOKENS} words and signs, got more`, line: seen.line }
  }
  return undefined
}

const FLOW_STEP: Readonly<Record<string, number>> = { '[': 1, '{': 1, ']': -1, '}': -1 }

function newlinesIn(token: string): number {
  return token.includes('\n') ? token.split('\n').length - 1 : 0
}

/** Warnings are errors: an unknown tag means that the writer wanted something else than he gets. */
function troubleOf(document: Pick<Document, 'errors' | 'warnings'>): YamlReading | undefined {
  const trouble = document.errors[0] ?? document.warnings[0]
  if (trouble === undefined) return undefined
  const [at] = trouble.linePos ?? []
  const reason = (trouble.message.split('\n')[0] ?? '').replace(/ at line \d+, column \d+:?$/, '')
  return { ok: false, reason, ...(at === undefined ? {} : { line: at.line, column: at.col }) }
}

function dataOf(document: Document, counter: LineCounter): YamlReading {
  try {
    const value: unknown = document.toJS({ maxAliasCount: MOST_ALIASES })
    return { ok: true, value, lines: Object.fromEntries(linesOf({ node: document.contents, counter, key: '' })) }
  } catch (error) {
    // The only ways to fail here: too many aliases, or one that points nowhere; both say so themselves.
    return { ok: false, reason: error instanceof Error ? error.message : String(error) }
  }
}

interface Placed {
  readonly node: unknown
  readonly counter: LineCounter
  readonly key: string
}

function linesOf({ node, counter, key }: Placed): readonly (readonly [string, number])[] {
  return childrenOf(node).flatMap((child) => {
    const inner = key === '' ? child.name : `${key}.${child.name}`
    return [[inner, counter.linePos(child.at).line] as const, ...linesOf({ node: child.node, counter, key: inner })]
  })
}

function childrenOf(node: unknown): readonly { readonly name: string; readonly at: number; readonly node: unknown }[] {
  if (isMap(node)) {
    const pairs = node.items.flatMap(({ key, value }) => (isScalar(key) ? [{ key, value }] : []))
    return pairs.map(({ key, value }) => ({ name: String(key.value), at: key.range?.[0] ?? 0, node: value }))
  }
  if (!isSeq(node)) return []
  return node.items.map((item, index) => ({ name: String(index), at: startOf(item), node: item }))
}

function startOf(node: unknown): number {
  return isMap(node) || isSeq(node) || isScalar(node) || isAlias(node) ? (node.range?.[0] ?? 0) : 0
}
