/**
 * The call of this program. It never comes by node's own command line: node reads some options wherever they stand
 * among its words, and its environment and directory decide what code it loads. It comes in one of two ways, which LLM_DO_CALL
 * names, the one variable of node's environment that is about us:
 *   WORDS:DIRECTORY  numbers of two descriptors, from native/client/node-call.c
 *   argv             from the script of scripts/commands.mjs: a `=` before each word, so that none is an option; LLM_DO_KEPT_ before
 *                    the name of each variable; the directory as a variable
 * Words are exact to the byte: node decodes argv as UTF-8 and puts U+FFFD where it is not, but a file name in Latin-1 must reach
 * the command unchanged.
 *
 * Edge: process.env, process.argv, process.cwd, /proc/self/cmdline, inherited descriptors, the working directory.
 */
import { closeSync, readFileSync } from 'node:fs'
import { SandboxError } from '../error.ts'

export type Environment = Readonly<Record<string, string | undefined>>

export interface Words {
  /** Exact when `bytes` is absent, else good for messages only. */
  readonly text: readonly string[]
  /** The same words as bytes; present only when one of them is not UTF-8. */
  readonly bytes?: readonly Uint8Array[]
}

export interface Call extends Words {
  /** The caller's. process.env is ours: nothing of it reaches a run. */
  readonly env: Environment
  /** Why the caller's directory cannot be ours. */
  readonly astray?: unknown
  /** Process that started us, as it was at our own start; 0 where it is in another pid namespace. */
  readonly parent: number
  /** Descriptor of a run's outcome that is to be explained; the words are those of the run. */
  readonly outcome?: number
}

const CALL = 'LLM_DO_CALL'
const DIRECTORY = 'LLM_DO_DIRECTORY'
const KEPT = 'LLM_DO_KEPT_'
const PREFIX = '='

/** Node's replacement for bytes that are not UTF-8; a caller may also have typed it. */
const REPLACEMENT = '\ufffd'

export function wordsFrom<Some extends Words>(call: Some, start: number): Some {
  const { text, bytes } = call
  return { ...call, text: text.slice(start), ...(bytes && { bytes: bytes.slice(start) }) }
}

/** Every part that is ended by NUL. */
function partsOf(raw: Buffer): readonly Buffer[] {
  const parts: Buffer[] = []
  for (let start = 0; start < raw.length; ) {
    const end = raw.indexOf(0, start)
    parts.push(raw.subarray(start, end === -1 ? raw.length : end))
    start = end === -1 ? raw.length : end + 1
  }
  return parts
}

/** Words whose bytes are known. */
function wordsOf(bytes: readonly Buffer[]): Words {
  const text = bytes.map((word) => word.toString())
  const isExact = text.every((word, at) => !word.includes(REPLACEMENT) || Buffer.from(word).equals(bytes[at] as Buffer))
  return isExact ? { text } : { text, bytes }
}

/** The first of several variables with one name counts, as for getenv(3). */
function environmentOf(pairs: readonly (readonly [name: string, value: string])[]): Environment {
  const env: Record<string, string> = Object.create(null)
  for (const [name, value] of pairs) if (name !== '') env[name] ??= value
  return env
}

function pairOf(variable: Buffer): readonly [string, string] {
  const text = variable.toString()
  const at = text.indexOf('=')
  return at === -1 ? ['', ''] : [text.slice(0, at), text.slice(at + 1)]
}

/* ---- from native/client/node-call.c ---- */

/** @param raw the outcome's descriptor, our parent, how many words and how many variables there are, then those; each ended by NUL */
export function readHandover(raw: Buffer): Omit<Call, 'astray'> {
  const [outcome, parent, words, variables, ...rest] = partsOf(raw)
  const [count, more] = [Number(words), Number(variables)]
  if (rest.length !== count + more) throw new Error(`call: expected ${count} words and ${more} variables`)
  return {
    ...wordsOf(rest.slice(0, count)),
    env: environmentOf(rest.slice(count).map(pairOf)),
    parent: Number(parent),
    ...(Number(outcome) >= 0 && { outcome: Number(outcome) }),
  }
}

/** Both descriptors are closed: nothing that we start is to have them. */
function fromDescriptors(words: number, directory: number): Call {
  const call = readHandover(readFileSync(words))
  const entered = enter(`/proc/self/fd/${directory}`)
  closeSync(words)
  closeSync(directory)
  return { ...call, ...entered }
}

function enter(directory: string): Pick<Call, 'astray'> {
  try {
    process.chdir(directory)
    return {}
  } catch (astray) {
    return { astray }
  }
}

/* ---- from the script ---- */

/**
 * Pairs decoded words with their bytes.
 * @param commandLine content of /proc/self/cmdline: every word ended by NUL, those of node before ours
 */
export function exactWords(text: readonly string[], commandLine: Buffer): Words {
  const all = partsOf(commandLine)
  const bytes = all.slice(Math.max(0, all.length - text.length))
  return bytes.length === text.length ? wordsOf(bytes) : { text }
}

function argvWords(): Words {
  const text = process.argv.slice(2)
  if (!text.some((word) => word.includes(REPLACEMENT))) return { text }
  try {
    return exactWords(text, readFileSync('/proc/self/cmdline'))
  } catch {
    return { text } // No /proc: nothing better is known than what node decoded.
  }
}

function fromScript(): Call {
  const { text, bytes } = argvWords()
  if (!text.every((word) => word.startsWith(PREFIX))) throw notByNode()
  const kept = Object.entries(process.env).filter(([name]) => name.startsWith(KEPT))
  return {
    text: text.map((word) => word.slice(PREFIX.length)),
    ...(bytes && { bytes: bytes.map((word) => word.subarray(PREFIX.length)) }),
    env: environmentOf(kept.map(([name, value = '']) => [name.slice(KEPT.length), value])),
    parent: process.ppid,
    ...enter(process.env[DIRECTORY] ?? ''),
  }
}

/* ---- either ---- */

function notByNode(): SandboxError {
  return new SandboxError(
    'USAGE',
    'node was given this file by hand: it would read options of its own among the words.',
    {
      hint: 'start bin/llm-do or bin/llm-do-exec of this package',
    },
  )
}

function read(): Call {
  const form = process.env[CALL] ?? ''
  const [, words, directory] = /^(\d+):(\d+)$/.exec(form) ?? []
  if (words !== undefined) return fromDescriptors(Number(words), Number(directory))
  if (form === 'argv') return fromScript()
  throw notByNode()
}

/** Where temporary files go is the one thing that node itself is asked (os.tmpdir). */
const TEMPORARY = ['TMPDIR', 'TEMP', 'TMP'] as const

/** @throws SandboxError USAGE when node was started with this program by hand */
export function readCall(): Call {
  const call = read()
  for (const name of Object.keys(process.env)) if (name.startsWith('LLM_DO_')) delete process.env[name]
  for (const name of TEMPORARY) if (call.env[name]) process.env[name] = call.env[name]
  return call
}
