/** apt: the mirrors of its lists of sources, in both forms. Pure. */
import { posix } from 'node:path'
import { type Look, type Mention, type Mentions, mention } from './look.ts'

const DIRECTORY = '/etc/apt/sources.list.d'

export function apt(look: Look): Mentions {
  const names = look.names(DIRECTORY).map((name) => posix.join(DIRECTORY, name))
  const lists = ['/etc/apt/sources.list', ...names.filter((file) => file.endsWith('.list'))]
  const stanzas = names.filter((file) => file.endsWith('.sources'))
  const mentions = [
    ...lists.flatMap((file) => mention(file, fromList(look.text(file) ?? ''))),
    ...stanzas.flatMap((file) => mention(file, fromStanzas(look.text(file) ?? ''))),
  ]
  return { own: mentions.flatMap((found) => mirrorsOf(look, found)), project: [] }
}

const fromList = (text: string): readonly string[] =>
  text.split('\n').flatMap((line) => /^\s*deb(?:-src)?\s+(?:\[[^\]]*\]\s+)?(\S+)/.exec(line)?.[1] ?? [])

const fromStanzas = (text: string): readonly string[] =>
  text
    .replace(/^#.*\n?/gm, '')
    .split(/\n\s*\n/)
    .filter((stanza) => !/^Enabled:\s*no\s*$/im.test(stanza))
    .flatMap((stanza) => (/^URIs:((?:.*\n?)(?:[ \t]+.*\n?)*)/im.exec(stanza)?.[1] ?? '').split(/\s+/))

/** `mirror+file:PATH` is a file with an address on each line. */
function mirrorsOf(look: Look, { url, from }: Mention): readonly Mention[] {
  const file = /^mirror\+file:(?:\/\/)?(\/.*)$/.exec(url)?.[1]
  if (file === undefined) return [{ url, from }]
  const lines = (look.text(file) ?? '').split('\n').filter((line) => !line.startsWith('#'))
  return mention(
    file,
    lines.map((line) => line.split(/\s/)[0]),
  )
}
