/** pip: the indexes of its configuration files and variables; else pip's default. Pure. */
import { posix } from 'node:path'
import { settingsOf } from './ini.ts'
import { firstOf, type Look, type Mention, type Mentions, mention } from './look.ts'

export async function pip(look: Look): Promise<Mentions> {
  const found = ownFiles(look).map((file) => indexesIn(file, look.text(file) ?? ''))
  const site = look.variable('VIRTUAL_ENV')
  const siteFile = site === undefined ? undefined : posix.join(site, 'pip.conf')
  const named = firstOf(fromVariable(look, 'PIP_INDEX_URL'), ...found.map(({ main }) => main))
  return {
    own: [
      ...(named.length > 0 ? named : await builtIn(look)),
      ...fromVariable(look, 'PIP_EXTRA_INDEX_URL'),
      ...found.flatMap(({ extra }) => extra),
    ],
    // A virtual environment is a directory that commands install into.
    project: siteFile === undefined ? [] : Object.values(indexesIn(siteFile, look.projectText(siteFile) ?? '')).flat(),
  }
}

/** The one that counts most first. */
function ownFiles(look: Look): readonly string[] {
  const set = look.variable('PIP_CONFIG_FILE')
  const user = [posix.join(look.configHome, 'pip/pip.conf'), posix.join(look.home, '.pip/pip.conf')]
  return [...(set === undefined ? [] : [set]), ...user, '/etc/pip.conf', '/etc/xdg/pip/pip.conf']
}

const urlsOf = (value: string): readonly string[] => value.split(/\s+/).filter((url) => url !== '')

const fromVariable = (look: Look, name: string): readonly Mention[] =>
  mention(`variable ${name}`, urlsOf(look.variable(name) ?? ''))

/** From every section: options of `pip install` and `pip download` are the user's settings, too. */
function indexesIn(file: string, text: string) {
  const settings = settingsOf(text, { separator: /[=:]/, continues: true })
  const urls = (wanted: string) =>
    settings.filter(({ key }) => key.replaceAll('_', '-') === wanted).flatMap(({ value }) => urlsOf(value))
  return { main: mention(file, urls('index-url')), extra: mention(file, urls('extra-index-url')) }
}

const QUESTION =
  'from pip._internal.models.index import PyPI as i; print(i.simple_url, "https://" + i.file_storage_domain)'

/** Its index, and where that has its files. `-I`: no file of a directory and no variable takes part. */
async function builtIn(look: Look): Promise<readonly Mention[]> {
  const answer = await look.ask('python3', ['-I', '-c', QUESTION])
  return mention('pip of python3', urlsOf(answer ?? ''))
}
