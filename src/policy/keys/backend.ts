/** Keys that choose where a command runs. */

import { type Reader, understood } from '../../text/units.ts'
import { oneOf, readAbsoluteHostPath, readImage } from '../readers.ts'
import { BACKEND_NAMES, type BackendChoice, type EngineChoice, isWeakerBackend } from '../values.ts'
import { type Key, type KeyFlag, scalar, section, word } from './key.ts'
import { chosen, operatorsOnly, ranked } from './narrowing.ts'

const flag = (name: string, argument: string): KeyFlag => ({ name, argument, group: 'Backend' })

/** Parsed value of `backend`: an alias of an engine names the engine too. */
export interface ParsedBackend {
  readonly backend: BackendChoice
  readonly engine?: EngineChoice
}

const [FIRST, ...OTHERS] = BACKEND_NAMES
const named = (names: readonly BackendChoice[]): Readonly<Record<string, ParsedBackend>> =>
  Object.fromEntries(names.map((backend) => [backend, { backend }]))

const BACKEND_WORDS: Readonly<Record<string, ParsedBackend>> = {
  ...named(['auto', FIRST]),
  bubblewrap: { backend: 'namespace', engine: 'bwrap' },
  bwrap: { backend: 'namespace', engine: 'bwrap' },
  unshare: { backend: 'namespace', engine: 'unshare' },
  ...named(OTHERS),
}
export type BackendWord = BackendChoice | 'bubblewrap' | 'bwrap' | 'unshare'

const readBackend: Reader<ParsedBackend> = (value) => {
  const reading = oneOf(Object.keys(BACKEND_WORDS))(value)
  return reading.ok ? understood(BACKEND_WORDS[reading.value] ?? { backend: 'auto' }) : reading
}

export const backend: Key<BackendWord, ParsedBackend, BackendChoice> & { readonly default: BackendWord } = {
  description: 'Where it runs; bubblewrap, bwrap and unshare are the namespace backend with that engine.',
  unit: 'word',
  type: 'string',
  enum: Object.keys(BACKEND_WORDS),
  standard: 'auto',
  default: 'auto',
  shape: { kind: 'value', read: readBackend },
  merging: { resolve: (parsed: ParsedBackend) => parsed.backend, add: (_below, above: BackendChoice) => above },
  // Whole sandboxes are of equal rank: one backend is as tight as another.
  narrowing: {
    isWider: isWeakerBackend,
    takes: (wanted: BackendChoice, granted: BackendChoice) => (granted === 'auto' ? wanted : granted),
    shows: String,
    grants: String,
  },
  flags: [flag('backend', ['auto', ...BACKEND_NAMES].join('|'))],
}

export const engine = word<EngineChoice>(['auto', 'bwrap', 'unshare'], {
  description: 'What builds the walls of the namespace backend.',
  default: 'auto',
  flag: { ...flag('engine', 'auto|bwrap|unshare'), isRare: true },
  narrowing: chosen((granted) => granted === 'auto'),
})

export const image = scalar<string, string>(readImage, {
  description: 'Container image.',
  unit: 'image',
  type: 'string',
  standard: 'from runtime',
  flag: flag('image', 'IMAGE'),
  narrowing: chosen((granted) => granted === undefined, 'default'),
})

/** Runtimes with a default image, and the one that the wasm backend uses only when it is named. */
export const RUNTIMES = ['node', 'python', 'cpp', 'java', 'dotnet', 'bash', 'wasmtime'] as const

export const runtime = word<(typeof RUNTIMES)[number]>(RUNTIMES, {
  description: 'Kind of program, which chooses the default image; wasmtime: runs WASI modules instead of node.',
  flag: { ...flag('runtime', 'NAME'), isRare: true },
  narrowing: chosen((granted) => granted === undefined, 'default'),
})

export const docker = section({
  reuse: word(['off', 'session'], {
    description: 'session keeps one container per plan: quicker, and runs can see what earlier ones left.',
    default: 'off',
    flag: { ...flag('docker-reuse', 'off|session'), isRare: true },
    narrowing: ranked(['off', 'session']),
  }),
})

export const cgroupParent = scalar<string, string>(readAbsoluteHostPath, {
  description: 'Cgroup directory below which the run gets its own.',
  unit: 'absolute path',
  type: 'string',
  standard: 'found automatically',
  flag: { name: 'cgroup-parent', argument: 'DIR', group: 'Limits', isRare: true },
  narrowing: operatorsOnly('found automatically'),
})

export const pool = word(['auto', 'off'], {
  description: 'Whether a warm sandbox may be used.',
  default: 'auto',
  flag: { ...flag('pool', 'auto|off'), isRare: true },
  narrowing: ranked(['off', 'auto']),
})
