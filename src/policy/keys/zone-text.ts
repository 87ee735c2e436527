/** Zones as a flag has them: `SRC[:TARGET][:WORD,...]`, where a word is a mode or a switch of a zone. Pure. */
import { listWords } from '../../text/choices.ts'
import { didYouMean } from '../../text/did-you-mean.ts'
import { quoteText, quoteValue } from '../../text/units.ts'
import { HOST_MODES, type HostMode } from '../values.ts'
import type { FlagValues } from './key.ts'
import type { ZoneInput } from './zone.ts'

const SWITCHES = ['create', 'optional', 'sockets', 'secret'] as const
type Switch = (typeof SWITCHES)[number]

interface WrittenZone extends Pick<ZoneInput, 'target' | Switch> {
  readonly hostPath: string
  /** Each that is written: one of them is what a zone can have. */
  readonly modes: readonly HostMode[]
}

export const ZONE_WORDS: readonly string[] = [...HOST_MODES, ...SWITCHES]

/** Takes words off the end where all of them are known; otherwise they are a part of the path. */
function splitWords(text: string): { readonly rest: string; readonly words: readonly string[] } {
  const at = text.lastIndexOf(':')
  const words = text.slice(at + 1).split(',')
  return at < 0 || !words.every((word) => ZONE_WORDS.includes(word))
    ? { rest: text, words: [] }
    : { rest: text.slice(0, at), words }
}

/** A target begins with a slash, so the last `:/` divides and a source may have other colons; one with `:/` in it can only be named in a profile. */
export function splitTarget(text: string): { readonly hostPath: string; readonly target?: string } {
  const at = text.lastIndexOf(':/')
  return at < 0 ? { hostPath: text } : { hostPath: text.slice(0, at), target: text.slice(at + 1) }
}

function readZone(text: string): WrittenZone {
  const { rest, words } = splitWords(text)
  const switches = SWITCHES.filter((name) => words.includes(name))
  return {
    ...splitTarget(rest),
    modes: HOST_MODES.filter((mode) => words.includes(mode)),
    ...Object.fromEntries(switches.map((name) => [name, true])),
  }
}

/** `/x:craete`, docker's `/x:z`: a target with a colon, which only a profile can name, is a mistake. */
function strayWord({ target = '' }: Pick<WrittenZone, 'target'>): string | undefined {
  const at = target.lastIndexOf(':')
  if (at < 0) return undefined
  const word = target.slice(at + 1)
  return `expected ${listWords(ZONE_WORDS)} behind the target, got ${quoteText(word)}.${didYouMean(word, ZONE_WORDS)}`
}

export const zoneValues = (input: ZoneInput): FlagValues => ({ values: { zones: [input] } })

/** Value of a flag whose name gives the mode. */
export function unnamedZone(text: string, mode: HostMode): FlagValues {
  const { modes, ...zone } = readZone(text)
  if (zone.hostPath === '') return { problem: `expected SRC[:TARGET], got ${quoteValue(text)}.` }
  const stray = strayWord(zone)
  if (stray !== undefined) return { problem: stray }
  const other = modes.find((written) => written !== mode)
  if (other !== undefined)
    return { problem: `expected a zone that is ${mode}, got ${quoteText(text)}. Did you mean --${other}?` }
  return zoneValues({ mode, ...zone })
}

/**
 * Value of a flag that leaves the mode to its value.
 * @param expected the form of the value, for messages
 * @param known keys of the zone that the flag sets
 */
export function zoneOfMode(text: string, expected: string, known: ZoneInput & { readonly mode: HostMode }): FlagValues {
  const { modes, ...zone } = readZone(text)
  if (zone.hostPath === '' || (known.target !== undefined && zone.target !== undefined))
    return { problem: `expected ${expected}, got ${quoteValue(text)}.` }
  const stray = strayWord(zone)
  if (stray !== undefined) return { problem: stray }
  if (modes.length > 1) return { problem: `expected one mode, got ${modes.join(' and ')}.` }
  return zoneValues({ ...known, ...zone, mode: modes[0] ?? known.mode })
}
