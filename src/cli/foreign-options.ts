/**
 * Options of docker, podman, bwrap, firejail, deno and srt, for those whose fingers know them: what each means in words of ours. Nothing
 * is done by them; the refusal says what to write. Pure.
 */

export type Meaning =
  | { readonly words: readonly string[] }
  /** Why it can be left out. */
  | { readonly needless: string }
  /** What there is instead. */
  | { readonly unserved: string }

interface ForeignOption {
  readonly spellings: readonly string[]
  /** How many of the words behind it are its own; `=VALUE` is always one. */
  readonly values: 0 | 1 | 2
  readonly means: (...values: readonly string[]) => Meaning
}

const words = (...all: readonly string[]): Meaning => ({ words: all })
const needless = (why: string) => (): Meaning => ({ needless: why })
const unserved = (why: string) => (): Meaning => ({ unserved: why })

/* ---- files ---- */

/** `--ro-bind /usr /usr` and the like. */
const SHOWN_ANYWAY = /^\/(?:(?:usr|bin|sbin|lib|lib32|lib64|etc|proc|dev|sys|tmp|run)?)\/?$/

function zone(mode: 'ro' | 'rw', source: string, target: string): Meaning {
  if (SHOWN_ANYWAY.test(target)) return { needless: 'the directories of the system are there' }
  return words(`--${mode}`, source === target ? source : `${source}:${target}`)
}

const bind =
  (mode: 'ro' | 'rw') =>
  (source = 'SRC', target = source): Meaning =>
    zone(mode, source, target)

/** `SRC:DST[:OPTION,...]`; a lone `DST` is a volume without a name. */
function volume(text = 'SRC:DST'): Meaning {
  const [source = '', target, options = ''] = text.split(':')
  if (target === undefined) return words('--tmpfs', source)
  return zone(options.split(',').includes('ro') ? 'ro' : 'rw', source, target)
}

/** `type=bind,source=SRC,target=DST[,readonly]`. */
function mount(text = 'type=bind,source=SRC,target=DST'): Meaning {
  const parts = new Map(text.split(',').map((part) => [part.split('=')[0] ?? '', part.slice(part.indexOf('=') + 1)]))
  const first = (...names: readonly string[]) => names.map((name) => parts.get(name)).find((value) => value)
  const target = first('target', 'destination', 'dst') ?? 'DST'
  if (first('type') === 'tmpfs') return words('--tmpfs', target)
  const isReadOnly = ['readonly', 'ro'].some((name) => parts.has(name) && parts.get(name) !== 'false')
  return zone(isReadOnly ? 'ro' : 'rw', first('source', 'src') ?? 'SRC', target)
}

/** `a,b` -> `--flag a --flag b`. */
const each =
  (flag: string, standard: readonly string[]) =>
  (text?: string): Meaning =>
    words(...(text === undefined ? standard : text.split(',').flatMap((value) => [flag, value])))

/* ---- the rest ---- */

const NETWORKS: Readonly<Record<string, string>> = {
  none: 'none',
  host: 'host',
  bridge: 'record',
  default: 'record',
  private: 'record',
  slirp4netns: 'record',
  pasta: 'record',
}

function network(name = 'none'): Meaning {
  const mode = NETWORKS[name]
  return mode === undefined ? { unserved: 'there are no networks by name: --allow-host HOST' } : words('--net', mode)
}

function port(text = 'PORT'): Meaning {
  if (text.endsWith('/udp')) return { unserved: 'only TCP can be published' }
  return words('--publish', text.replace(/\/tcp$/, ''))
}

function securityOption(text = ''): Meaning {
  const [name, value = ''] = text.split(/[=:]/)
  if (name !== 'seccomp') return { needless: 'the command can gain no privilege' }
  return words('--seccomp', value === 'unconfined' ? 'off' : value)
}

const variable = (name = 'NAME', value?: string): Meaning =>
  words('--env', value === undefined ? name : `${name}=${value}`)
const directory = (path = 'DIR'): Meaning => words('--workdir', path)

const STDIN = 'stdin is always passed on'
const DETACHED = 'a run ends with its caller: start it in the background (&)'
const OWN_NAMESPACES = 'a run always has namespaces of its own'
const NO_CAPABILITY = 'the command has no capability'
const NOT_ROOT = 'the command is never root'
const NO_DEVICE = 'no device of this host is shown'
const EMPTY_HOME = 'the home directory is an empty one'

/** The first that has a spelling counts. */
export const FOREIGN_OPTIONS: readonly ForeignOption[] = [
  { spellings: ['-v', '--volume'], values: 1, means: volume },
  { spellings: ['--mount'], values: 1, means: mount },
  { spellings: ['--bind', '--bind-try'], values: 2, means: bind('rw') },
  { spellings: ['--ro-bind', '--ro-bind-try'], values: 2, means: bind('ro') },
  {
    spellings: ['--dev-bind', '--dev-bind-try'],
    values: 2,
    means: (source = 'SRC', target = source) =>
      source.startsWith('/dev') ? { unserved: NO_DEVICE } : zone('rw', source, target),
  },
  { spellings: ['--dir'], values: 1, means: (path = 'DIR') => words('--tmpfs', path) },
  { spellings: ['--whitelist', '--read-write'], values: 1, means: each('--rw', ['--rw', 'PATH']) },
  { spellings: ['--allow-write'], values: 0, means: each('--rw', ['--rw', '.']) },
  { spellings: ['--allow-read'], values: 0, means: each('--ro', ['--ro', '.']) },
  {
    spellings: ['--read-only'],
    values: 0,
    means: (path) => (path === undefined ? { needless: 'only --rw makes something writable' } : words('--ro', path)),
  },
  { spellings: ['--readonly'], values: 0, means: needless('only --rw makes something writable') },
  { spellings: ['--blacklist'], values: 1, means: needless('only what is named is shown') },
  {
    spellings: ['--private'],
    values: 0,
    means: (path) => (path === undefined ? { needless: EMPTY_HOME } : words('--rw', `${path}:/home/sandbox`)),
  },
  { spellings: ['--private-home'], values: 0, means: needless(EMPTY_HOME) },
  {
    spellings: ['--private-tmp', '--private-dev', '--private-etc', '--private-bin'],
    values: 0,
    means: needless('only what is named is shown'),
  },
  { spellings: ['--proc', '--dev'], values: 1, means: needless('/proc and /dev are there') },

  { spellings: ['-e'], values: 1, means: variable },
  { spellings: ['--setenv'], values: 2, means: variable },
  { spellings: ['--allow-env'], values: 0, means: each('--env', ['--env', 'NAME']) },
  { spellings: ['--unsetenv'], values: 1, means: needless('only variables that are named are passed on') },
  { spellings: ['--clearenv'], values: 0, means: needless('only variables that are named are passed on') },
  {
    spellings: ['--env-file'],
    values: 1,
    means: unserved('name each variable (--env NAME=VALUE), or put them below env.set of a profile'),
  },
  { spellings: ['-w', '--cwd', '--chdir', '-C'], values: 1, means: directory },
  { spellings: ['-t'], values: 0, means: () => words('--tty') },
  { spellings: ['-i', '--interactive'], values: 0, means: needless(STDIN) },
  { spellings: ['-d', '--detach'], values: 0, means: unserved(DETACHED) },

  { spellings: ['--network'], values: 1, means: network },
  { spellings: ['--unshare-net'], values: 0, means: () => words('--net', 'none') },
  { spellings: ['--share-net'], values: 0, means: () => words('--net', 'host') },
  { spellings: ['--allow-net'], values: 0, means: each('--allow-host', ['--net', 'record']) },
  { spellings: ['-p'], values: 1, means: port },

  { spellings: ['-m'], values: 1, means: (size = 'SIZE') => words('--memory', size) },
  { spellings: ['--pids-limit'], values: 1, means: (count = 'N') => words('--pids', count) },
  { spellings: ['--shm-size'], values: 1, means: unserved('resources.shm of a profile says it') },

  { spellings: ['-u', '--user', '--uid', '--gid'], values: 1, means: needless(NOT_ROOT) },
  { spellings: ['--cap-drop', '--caps.drop'], values: 1, means: needless(NO_CAPABILITY) },
  { spellings: ['--cap-add'], values: 1, means: unserved('no capability can be given') },
  { spellings: ['--privileged'], values: 0, means: unserved('no capability can be given') },
  { spellings: ['--security-opt'], values: 1, means: securityOption },
  { spellings: ['--nonewprivs', '--noroot'], values: 0, means: needless(NOT_ROOT) },
  { spellings: ['--device', '--gpus'], values: 1, means: unserved(NO_DEVICE) },
  {
    spellings: [
      '--unshare-all',
      '--unshare-user',
      '--unshare-ipc',
      '--unshare-pid',
      '--unshare-uts',
      '--unshare-cgroup',
    ],
    values: 0,
    means: needless(OWN_NAMESPACES),
  },
  { spellings: ['--ipc', '--pid', '--uts', '--userns', '--cgroupns'], values: 1, means: needless(OWN_NAMESPACES) },

  { spellings: ['--rm'], values: 0, means: needless('nothing is left of a run') },
  { spellings: ['--name'], values: 1, means: needless('llm-do ps gives each run an ID') },
  { spellings: ['--hostname'], values: 1, means: needless('no name of this host is shown') },
  { spellings: ['--new-session'], values: 0, means: needless('a command always has a session of its own') },
  { spellings: ['--init'], values: 0, means: needless('a command always has an init') },
  { spellings: ['--entrypoint'], values: 1, means: unserved('what stands behind -- is the command') },
  { spellings: ['--dry-run'], values: 0, means: () => words('--plan') },
  { spellings: ['--settings'], values: 1, means: unserved('a profile says it: --profile FILE') },
]

const BY_SPELLING = new Map(
  FOREIGN_OPTIONS.flatMap((option) => option.spellings.map((name) => [name, option] as const)),
)

export interface Foreign {
  /** As it was written, without its values. */
  readonly name: string
  readonly meaning: Meaning
  /** How many words it is, values included. */
  readonly length: number
}

/** `-v/a:/b`, `-eA=b`, `-m512m`. */
const ATTACHED = /^(-[vewpum])(.*[^A-Za-z].*)$/s
/** `-it`, `-dit`. */
const CLUSTER = /^-[dit]{2,}$/

/** The option of another program that begins at `at`; undefined where none is known. */
export function foreignOptionAt(line: readonly string[], at: number): Foreign | undefined {
  const word = line[at] ?? ''
  if (CLUSTER.test(word)) return { name: word, length: 1, meaning: meaningOfCluster(word) }
  const [, name = word, attached] = ATTACHED.exec(word) ?? /^(--[^=]+)=(.*)$/s.exec(word) ?? []
  const option = BY_SPELLING.get(name)
  if (option === undefined) return undefined
  if (attached !== undefined) return { name, length: 1, meaning: option.means(...valuesIn(attached, option)) }
  const values = line.slice(at + 1, at + 1 + option.values)
  const end = values.indexOf('--')
  const own = end === -1 ? values : values.slice(0, end)
  return { name, length: 1 + own.length, meaning: option.means(...own) }
}

/** `--bind=SRC,DST` is firejail's. */
const valuesIn = (text: string, { values }: ForeignOption): readonly string[] =>
  values === 2 ? text.split(',') : [text]

function meaningOfCluster(word: string): Meaning {
  if (word.includes('d')) return { unserved: DETACHED }
  return word.includes('t') ? words('--tty') : { needless: STDIN }
}

/** One finished line. @param printWord how a word is shown to be pasted */
export function foreignLine({ name, meaning }: Foreign, printWord: (word: string) => string): string {
  if ('words' in meaning) return `${name}: did you mean ${meaning.words.map(printWord).join(' ')}?`
  return 'needless' in meaning ? `${name}: leave it out: ${meaning.needless}.` : `${name}: ${meaning.unserved}.`
}
