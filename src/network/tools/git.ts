/**
 * git: the remotes of the repository around the caller's directory, rewritten by `insteadOf` as git does. Only a repository of the
 * caller's own counts, as for git itself. Pure.
 */
import { posix } from 'node:path'
import { type Setting, settingsOf, unquoted } from './ini.ts'
import { type Look, type Mentions, mention } from './look.ts'

/** Section and key in lower case. */
interface GitSetting extends Setting {
  readonly name: string
}

export function git(look: Look): Mentions {
  const file = configOf(look)
  const own = file === undefined ? [] : readSettings(look, file)
  const rules = [...own, ...globalFiles(look).flatMap((path) => readSettings(look, path, 0))]
  const remotes = own.filter(({ section, key }) => section === 'remote' && (key === 'url' || key === 'pushurl'))
  return {
    own: mention(
      file ?? '',
      remotes.flatMap((remote) => rewritten(rules, remote)),
    ),
    project: [],
  }
}

/** The settings of the caller by which git writes commits. */
export interface GitIdentity {
  readonly name?: string
  readonly email?: string
  readonly signing?: GitSigning
}

export interface GitSigning {
  /** The sections whose `gpgsign` is on: commit, tag. */
  readonly signs: readonly string[]
  /** The public key, which an SSH agent knows; absent where only files that are not shown have it. */
  readonly key?: string
}

/** From the caller's own configuration: git inside reads that of a repository anyway, and it counts above this one. */
export function gitIdentity(look: Look): GitIdentity {
  const settings = globalFiles(look).flatMap((path) => readSettings(look, path, 0))
  const last = (within: string, wanted: string): string | undefined =>
    settings
      .findLast(({ section, name, key }) => section === within && name === '' && key === wanted)
      ?.value.replace(/\\(["\\])/g, '$1')
  const [name, email] = [last('user', 'name'), last('user', 'email')]
  const signs = ['commit', 'tag'].filter((section) => /^(?:true|yes|on|1)$/i.test(last(section, 'gpgsign') ?? ''))
  const key = last('gpg', 'format') === 'ssh' ? publicKey(look, last('user', 'signingkey')) : undefined
  const signing = signs.length === 0 ? {} : { signing: { signs, ...(key && { key }) } }
  return { ...(name && { name }), ...(email && { email }), ...signing }
}

/** git-config(1), "user.signingKey": the key itself, or a file with it. Of a private key the file next to it has the public one. */
function publicKey(look: Look, written = ''): string | undefined {
  const literal = /^(?:key::)?((?:ssh|ecdsa|sk)-\S+ \S+)/.exec(written)?.[1]
  if (literal !== undefined || written === '') return literal
  const file = written.replace(/^~\//, `${look.home}/`)
  return [...(file.endsWith('.pub') ? [] : [`${file}.pub`]), file]
    .map((path) => /^(?:ssh|ecdsa|sk)-\S+ \S+/.exec(look.text(path) ?? '')?.[0])
    .find((found) => found !== undefined)
}

function globalFiles(look: Look): readonly string[] {
  const set = look.variable('GIT_CONFIG_GLOBAL')
  const user =
    set === undefined ? [posix.join(look.configHome, 'git/config'), posix.join(look.home, '.gitconfig')] : [set]
  return ['/etc/gitconfig', ...user]
}

/** The configuration of the repository in or above a directory. */
function configOf(look: Look): string | undefined {
  for (let directory = look.cwd; ; directory = posix.dirname(directory)) {
    const path = posix.join(directory, '.git')
    const kind = look.ownKind(path)
    if (kind === 'directory') return posix.join(path, 'config')
    if (kind === 'file') return linkedConfig(look, path)
    if (directory === '/') return undefined
  }
}

/** For a worktree or a submodule: `gitdir: PATH`, and in there the way to the common directory. */
function linkedConfig(look: Look, file: string): string | undefined {
  const written = /^gitdir: (.*)$/m.exec(look.text(file) ?? '')?.[1]
  if (written === undefined) return undefined
  const directory = posix.resolve(posix.dirname(file), written)
  const common = look.text(posix.join(directory, 'commondir'))?.trim() ?? '.'
  const shared = posix.resolve(directory, common)
  return look.ownKind(shared) === 'directory' ? posix.join(shared, 'config') : undefined
}

/** Files that a file of the user's names one in another. */
const DEEPEST = 5

/** `depth`: of a user's file, of which `include.path` is followed; absent for a repository's. */
function readSettings(look: Look, file: string, depth?: number): readonly GitSetting[] {
  const settings = gitSettings(look.text(file) ?? '')
  if (depth === undefined || depth === DEEPEST) return settings
  return settings.flatMap((setting) => {
    if (setting.section !== 'include' || setting.key !== 'path') return [setting]
    const path = setting.value.replace(/^~\//, `${look.home}/`)
    return readSettings(look, posix.resolve(posix.dirname(file), path), depth + 1)
  })
}

const gitSettings = (text: string): readonly GitSetting[] =>
  settingsOf(text, { separator: /=/, continues: false }).map(({ section, key, value }) => {
    const [kind = '', name = ''] = section.split(/\s+(.*)/)
    return {
      section: kind.toLowerCase(),
      name: unquoted(name).replace(/\\(.)/g, '$1'),
      key: key.toLowerCase(),
      value: unquoted(value.replace(/\s+[#;].*$/, '')),
    }
  })

/** The longest prefix counts. What is pushed may be rewritten in another way than what is fetched. */
function rewritten(rules: readonly GitSetting[], { value, key }: GitSetting): readonly string[] {
  const by = (wanted: string): string | undefined => {
    const fitting = rules.filter(
      (rule) => rule.section === 'url' && rule.key === wanted && value.startsWith(rule.value),
    )
    const best = fitting.reduce<GitSetting | undefined>(
      (longest, rule) => (longest === undefined || rule.value.length > longest.value.length ? rule : longest),
      undefined,
    )
    return best === undefined ? undefined : best.name + value.slice(best.value.length)
  }
  const fetched = by('insteadof') ?? value
  const pushed = key === 'url' ? by('pushinsteadof') : undefined
  return [fetched, ...(pushed === undefined ? [] : [pushed])]
}
