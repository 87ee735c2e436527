/**
 * cargo: registries and replaced sources of the user's configuration. cargo does not tell its default registry, and
 * where a registry has its files only its index says. Pure.
 */
import { posix } from 'node:path'
import { settingsOf, unquoted } from './ini.ts'
import { type Look, type Mention, type Mentions, mention } from './look.ts'

export function cargo(look: Look): Mentions {
  const home = look.variable('CARGO_HOME') ?? posix.join(look.home, '.cargo')
  const filesIn = (directory: string) => ['config.toml', 'config'].map((name) => posix.join(directory, name))
  const own = filesIn(home)
  const project = upFrom(look.cwd)
    .flatMap((directory) => filesIn(posix.join(directory, '.cargo')))
    .filter((file) => !own.includes(file))
  return {
    own: own.flatMap((file) => registriesIn(file, look.text(file) ?? '')),
    project: project.flatMap((file) => registriesIn(file, look.projectText(file) ?? '')),
  }
}

const upFrom = (directory: string): readonly string[] =>
  directory === '/' ? ['/'] : [directory, ...upFrom(posix.dirname(directory))]

/** Dotted names of keys that hold the address of a registry. */
const REGISTRY = /^(?:registries\..+\.index|registry\.index|source\..+\.(?:registry|git))$/

/** TOML, as far as cargo's registries need it: tables, dotted keys, inline tables of one line. What is written otherwise names no host. */
function registriesIn(file: string, text: string): readonly Mention[] {
  const settings = settingsOf(text, { separator: /=/, continues: false }).flatMap(({ section, key, value }) => {
    const path = [section, key].filter((part) => part !== '').join('.')
    const inline = /^\{(.*)\}/.exec(value)?.[1]
    if (inline === undefined) return [{ path, value }]
    return inline.split(',').map((pair) => {
      const [inner = '', innerValue = ''] = pair.split(/=(.*)/)
      return { path: `${path}.${inner.trim()}`, value: innerValue.trim() }
    })
  })
  const urls = settings
    .filter(({ path }) => REGISTRY.test(path.replace(/["'\s]/g, '')))
    .map(({ value }) => unquoted(value.replace(/\s*#[^"']*$/, '')))
  return mention(file, urls)
}
