/**
 * The text of a profile -> a policy layer. Pure. Bounded against hostile text: no more than a few aliases, no tags,
 * no duplicate keys, one document, UTF-8 only. Values are checked later, by mergePolicies().
 */
import path from 'node:path'
import { type Document, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml'
import { SandboxError } from '../error.ts'
import { quoteText, quoteValue } from '../unit.ts'
import { invalidPolicy } from './invalid.ts'
import type { PolicyLayer } from './layer.ts'
import { didYouMean } from './nearest.ts'
import type { Layer } from './policy.ts'
import type { SandboxInput } from './schema.ts'

export interface ParsedProfile {
  readonly layer: PolicyLayer
  /** What the profile starts from, as it is written. */
  readonly extends?: string
}

/** More aliases than people write, fewer than it takes to blow up. */
const MOST_ALIASES = 64
/** Deeper than any policy, far from the end of the parser's stack. */
const DEEPEST = 64

/**
 * Reads the text of a profile.
 * @throws SandboxError PROFILE_UNREADABLE with line and column, POLICY_INVALID when it is YAML but no profile
 */
export function parseProfile(input: { readonly file: string; readonly bytes: Uint8Array }): ParsedProfile {
  const { file } = input
  const { value, places } = parseYaml(input)
  const sandbox = sandboxOf(file, value)
  const base = (sandbox as { extends?: unknown }).extends
  const layer: PolicyLayer = { layer: 'profile', source: file, directory: path.dirname(file), values: sandbox, places }
  return { layer, ...(typeof base === 'string' && base !== '' ? { extends: base } : {}) }
}

/** A layer from a piece of an already parsed file, for workshops and workers. */
export function layerOf(input: {
  readonly layer: Layer
  readonly file: string
  readonly values: SandboxInput
  readonly places?: Readonly<Record<string, string>>
}): PolicyLayer {
  return { ...input, source: input.file, directory: path.dirname(input.file) }
}

function sandboxOf(file: string, value: unknown): SandboxInput {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalidPolicy([`${file}: expected a mapping with the key sandbox, got ${quoteValue(value)}.`])
  }
  const unknown = Object.keys(value).filter((key) => key !== 'sandbox')
  const problems = unknown.map(
    (key) => `${file}: expected only the key sandbox at the top, got ${quoteText(key)}.${didYouMean(key, ['sandbox'])}`,
  )
  const { sandbox } = value as { readonly sandbox?: unknown }
  if (typeof sandbox !== 'object' || sandbox === null || Array.isArray(sandbox)) {
    throw invalidPolicy([...problems, `${file}: sandbox: expected a mapping, got ${quoteValue(sandbox)}.`])
  }
  if (problems.length > 0) throw invalidPolicy(problems)
  return sandbox
}

/** YAML as plain data, with the place (`file:line`) of every dotted key below `sandbox`. */
function parseYaml({ file, bytes }: { readonly file: string; readonly bytes: Uint8Array }) {
  const text = decode(file, bytes)
  const lines = new LineCounter()
  const document = parseText({ file, text, lines })
  const trouble = document.errors[0] ?? document.warnings[0]
  if (trouble !== undefined) {
    const at = trouble.linePos?.[0]
    throw unreadable({
      file,
      line: at?.line,
      column: at?.col,
      reason: trouble.message.split('\n')[0]?.replace(/ at line \d+, column \d+:?$/, '') ?? '',
    })
  }
  return { value: plain(file, document), places: placesOf({ file, lines, node: sandboxNode(document) }) }
}

function decode(file: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw unreadable({ file, reason: 'expected UTF-8 text, got other bytes', cause })
  }
}

function parseText({
  file,
  text,
  lines,
}: {
  readonly file: string
  readonly text: string
  readonly lines: LineCounter
}): Document {
  refuseDepth(file, text)
  return parseDocument(text, {
    version: '1.2',
    schema: 'core',
    uniqueKeys: true,
    strict: true,
    prettyErrors: true,
    lineCounter: lines,
  }) as Document
}

/** Nesting costs the parser stack and time; brackets and indentation bound it from above before it starts. */
function refuseDepth(file: string, text: string): void {
  for (const [index, line] of text.split('\n').entries()) {
    const openings = line.match(/[[{]|(?:^|\s)[-?](?=\s)/g)?.length ?? 0
    if (openings > DEEPEST * 4)
      throw unreadable({ file, line: index + 1, reason: 'expected a few levels of nesting, got far more' })
  }
}

function plain(file: string, document: Document): unknown {
  try {
    return document.toJS({ maxAliasCount: MOST_ALIASES })
  } catch (cause) {
    throw unreadable({ file, reason: cause instanceof Error ? cause.message : String(cause), cause })
  }
}

function sandboxNode(document: Document): unknown {
  return isMap(document.contents) ? document.contents.get('sandbox', true) : undefined
}

interface Placed {
  readonly file: string
  readonly lines: LineCounter
  readonly node: unknown
  readonly key?: string
  readonly depth?: number
}

/** Aliases are not followed: their key's own line is told. */
function placesOf({ file, lines, node, key = '', depth = 0 }: Placed): Readonly<Record<string, string>> {
  const inner = childrenOf(node).map((child) => ({ ...child, key: key === '' ? child.key : `${key}.${child.key}` }))
  if (depth >= DEEPEST) return {}
  return Object.assign(
    {},
    ...inner.map((child) => ({
      [child.key]: `${file}:${lines.linePos(child.at).line}`,
      ...placesOf({ file, lines, node: child.node, key: child.key, depth: depth + 1 }),
    })),
  )
}

function childrenOf(node: unknown): readonly { readonly key: string; readonly at: number; readonly node: unknown }[] {
  if (isMap(node)) {
    return node.items.flatMap(({ key, value }) =>
      isScalar(key) ? [{ key: String(key.value), at: key.range?.[0] ?? 0, node: value }] : [],
    )
  }
  if (!isSeq(node)) return []
  return node.items.map((item, index) => ({ key: String(index), at: (item as Node).range?.[0] ?? 0, node: item }))
}

function unreadable(input: {
  readonly file: string
  readonly line?: number | undefined
  readonly column?: number | undefined
  readonly reason: string
  readonly cause?: unknown
}): SandboxError {
  const { file, line, column, reason, cause } = input
  const place = [file, line, column].filter((part) => part !== undefined).join(':')
  return new SandboxError('PROFILE_UNREADABLE', `${place}: ${reason.replace(/\.$/, '')}.`, {
    hint: 'llm-do profiles show default   (a profile that works)',
    cause,
  })
}
