/** npm: `registry` and `@SCOPE:registry` of the user's and the system's npmrc, and of variables; else npm's default. Pure. */
import { posix } from 'node:path'
import { settingsOf, unquoted } from './ini.ts'
import { firstOf, type Look, type Mention, type Mentions, mention } from './look.ts'

export async function npm(look: Look): Promise<Mentions> {
  const user = configured(look, 'userconfig') ?? posix.join(look.home, '.npmrc')
  const files = [user, ...globalFiles(look)]
  const texts = files.map((file) => ({ file, text: look.text(file) ?? '' }))
  const fromFiles = texts.map(({ file, text }) => registriesIn({ look, file, text }))
  const project = posix.join(look.cwd, '.npmrc')
  const named = firstOf(fromVariable(look), ...fromFiles.map(({ main }) => main))
  return {
    own: [...(named.length > 0 ? named : await builtIn(look)), ...fromFiles.flatMap(({ scoped }) => scoped)],
    project: files.includes(project)
      ? []
      : allIn(registriesIn({ look, file: project, text: look.projectText(project) ?? '' })),
  }
}

/** npm takes `npm_config_KEY` in small letters and in capitals. */
const variableNames = (key: string): readonly string[] => [`npm_config_${key}`, `NPM_CONFIG_${key.toUpperCase()}`]

const configured = (look: Look, key: string): string | undefined =>
  variableNames(key)
    .map(look.variable)
    .find((value) => value !== undefined)

const fromVariable = (look: Look): readonly Mention[] =>
  firstOf(...variableNames('registry').map((name) => mention(`variable ${name}`, [look.variable(name)])))

/** Debian's npm has its own in /etc; every other one's is next to the program. */
function globalFiles(look: Look): readonly string[] {
  const set = configured(look, 'globalconfig')
  if (set !== undefined) return [set]
  const program = look.program('npm')
  // PREFIX/lib/node_modules/npm/bin/npm-cli.js
  const at = program?.lastIndexOf('/lib/node_modules/npm/') ?? -1
  return [...(at > 0 ? [`${program?.slice(0, at)}/etc/npmrc`] : []), '/etc/npmrc']
}

interface Registries {
  readonly main: readonly Mention[]
  readonly scoped: readonly Mention[]
}

const allIn = ({ main, scoped }: Registries): readonly Mention[] => [...main, ...scoped]

function registriesIn({ look, file, text }: { look: Look; file: string; text: string }): Registries {
  const settings = settingsOf(text, { separator: /=/, continues: false }).filter(({ section }) => section === '')
  const urls = (isWanted: (key: string) => boolean) =>
    settings.filter(({ key }) => isWanted(key)).map(({ value }) => expand(look, unquoted(value)))
  return {
    main: mention(file, urls((key) => key === 'registry').slice(-1)),
    scoped: mention(
      file,
      urls((key) => /^@[^:]+:registry$/.test(key)),
    ),
  }
}

/** `${NAME}` is a variable of the caller, as for npm. */
const expand = (look: Look, value: string): string =>
  value.replace(/\$\{([^}]+)\}/g, (_, name: string) => look.variable(name) ?? '')

/** No file of any directory is read for it. */
async function builtIn(look: Look): Promise<readonly Mention[]> {
  const nowhere = ['--userconfig=/nonexistent/user', '--globalconfig=/nonexistent/global']
  const answer = await look.ask('npm', ['config', 'get', 'registry', ...nowhere])
  return mention('npm config get registry', [answer?.trim()])
}
