/** The changes of a copy-on-write run: the words of `layers changes` (native/tools/layers.c), and what they mean to a caller. Pure. */
import { posix } from 'node:path'

export const CHANGE_KINDS = ['added', 'modified', 'deleted', 'renamed', 'mode', 'symlink', 'type'] as const
export type ChangeKind = (typeof CHANGE_KINDS)[number]

/** One line of the answer. Paths are bytes, one character each (latin1), relative to the zone; "." is its root. */
export interface RawChange {
  readonly zone: number
  readonly kind: ChangeKind
  readonly type: 'file' | 'directory' | 'symlink' | 'other'
  /** Permission bits in the layer, octal. */
  readonly mode: string
  /** Mode on the host, octal; '' where the host never had it, or something else. */
  readonly modeBefore: string
  /** The permission bits that apply gives it (native/tools/layer-modes.h). */
  readonly modeApplied: string
  readonly size: number
  /** The host has changed it since the run began. */
  readonly conflict: boolean
  /** Deleted with a directory above it. */
  readonly nested: boolean
  /** A program of the host runs or obeys it, or it has more rights than who starts it (native/tools/layer-protected.h). */
  readonly isProtected: boolean
  readonly path: string
  /** Target of a symbolic link, or the path before a rename. */
  readonly other: string
}

const WORDS = 10

export function parseChanges(bytes: Uint8Array): readonly RawChange[] {
  const words = Buffer.from(bytes).toString('latin1').split('\0').slice(0, -1)
  return Array.from({ length: Math.floor(words.length / WORDS) }, (_, index) =>
    parseChange(words.slice(index * WORDS, (index + 1) * WORDS)),
  )
}

function parseChange(words: readonly string[]): RawChange {
  const [zone = '', kind = '', type = '', mode = '', modeBefore = '', modeApplied = ''] = words
  const [size = '', flags = '', path = '', other = ''] = words.slice(6)
  return {
    zone: Number(zone),
    kind: kind as RawChange['kind'],
    type: type as RawChange['type'],
    mode,
    modeBefore,
    modeApplied,
    size: Number(size),
    conflict: flags.includes('c'),
    nested: flags.includes('n'),
    isProtected: flags.includes('p'),
    path,
    other,
  }
}

/** A change as JSON and the library show it. */
export interface Change {
  /** Relative to the zone; absolute where the run had several copy-on-write zones. */
  readonly path: string
  readonly kind: ChangeKind
  readonly type: RawChange['type']
  readonly size: number
  /** Permission bits in the layer, octal. */
  readonly mode: string
  /** On the host, where it has another mode. */
  readonly modeBefore?: string
  /** The mode that apply gives it without `modes`, where that is less. */
  readonly modeApplied?: string
  /** The path before a rename. */
  readonly from?: string
  /** The target of a symbolic link. */
  readonly target?: string
  readonly conflict?: true
  /** A symbolic link that leads out of the zone, or may do so through another link. */
  readonly outside?: true
  /** A program of the host runs or obeys it: applied only when it is named. */
  readonly protected?: true
  /** It is never applied: a device, FIFO or socket. */
  readonly refused?: 'special'
  /** The path as base64, where it is not UTF-8. */
  readonly bytes?: string
}

export interface LayerZone {
  /** On the host. */
  readonly source: string
  /** Inside. */
  readonly target: string
}

/** A path of bytes as text. */
export const textOf = (raw: string): string => Buffer.from(raw, 'latin1').toString('utf8')
/** Text as a path of bytes. */
export const rawOf = (text: string): string => Buffer.from(text, 'utf8').toString('latin1')

const isText = (raw: string): boolean => rawOf(textOf(raw)) === raw

export function shownChange(raw: RawChange, zones: readonly LayerZone[]): Change {
  const zone = zones[raw.zone]
  const place = (path: string) => (zones.length === 1 ? textOf(path) : posix.join(zone?.source ?? '', textOf(path)))
  const isLink = raw.type === 'symlink'
  return {
    path: place(raw.path),
    kind: raw.kind,
    type: raw.type,
    size: raw.size,
    mode: raw.mode,
    ...modesOf(raw),
    ...(raw.kind === 'renamed' ? { from: place(raw.other) } : {}),
    ...(isLink ? { target: textOf(raw.other) } : {}),
    ...(raw.conflict ? { conflict: true } : {}),
    ...(isLink && raw.kind !== 'deleted' && leadsOut(raw, zone) ? { outside: true } : {}),
    ...(raw.isProtected ? { protected: true } : {}),
    ...(raw.type === 'other' && raw.kind !== 'deleted' ? { refused: 'special' } : {}),
    ...(isText(raw.path) ? {} : { bytes: Buffer.from(raw.path, 'latin1').toString('base64') }),
  }
}

function modesOf({ kind, type, mode, modeBefore, modeApplied }: RawChange): Pick<Change, 'modeBefore' | 'modeApplied'> {
  if (kind === 'deleted' || type === 'symlink' || type === 'other') return {}
  return {
    ...(modeBefore === '' || modeBefore === mode ? {} : { modeBefore }),
    ...(modeApplied === mode ? {} : { modeApplied }),
  }
}

/**
 * By its text alone. What lies on the way may be a link itself, which is judged where it is; behind one, `..` leads anywhere, so a target
 * that goes up after a name counts.
 */
function leadsOut({ path, other }: RawChange, zone: LayerZone | undefined): boolean {
  const target = textOf(other)
  if (posix.isAbsolute(target)) return !`${posix.normalize(target)}/`.startsWith(`${zone?.source ?? ''}/`)
  const words = target.split('/').filter((word) => word !== '' && word !== '.')
  const up = words.findIndex((word) => word !== '..')
  const [ups, rest] = up === -1 ? [words.length, []] : [up, words.slice(up)]
  return ups > textOf(path).split('/').length - 1 || rest.includes('..')
}
