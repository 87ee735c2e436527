/**
 * Options of docker, podman, bwrap, firejail, deno and srt, for those whose fingers know them: what each means in our words. They
 * have no effect; the refusal prints what to write. Pure.
 */

export type Meaning =
  | { readonly words: readonly string[] }
  /** Why it can be left out. */
  | { readonly needless: string }
  /** The alternative. */
  | { readonly unserved: string }
  /** For `llm-do run`, which takes these words before all others. */
  | { readonly background: readonly string[] }

/**
 * `= WORDS`: our words, where values replace words in capitals, in order. `* FLAG`: the flag for each value between commas.
 * `- WHY`: it can be left out. `! WHY`: such an option does not exist. `& WORDS`: words of `llm-do run`.
 */
type Text = `${'=' | '*' | '-' | '!' | '&'} ${string}` | '&'

interface ForeignOption {
  readonly spellings: readonly string[]
  /** How many of the following words are its values; `=VALUE` is always one. */
  readonly values: 0 | 1 | 2
  readonly means: Text | ((...values: readonly string[]) => Meaning)
  /** With `=VALUE`, where that means something else. */
  readonly withValue?: Text
}

function meaningOf({ means, withValue }: ForeignOption, values: readonly string[]): Meaning {
  const text = values.length > 0 ? (withValue ?? means) : means
  if (typeof text === 'function') return text(...values)
  const rest = text.slice(2)
  switch (text[0]) {
    case '-':
      return { needless: rest }
    case '!':
      return { unserved: rest }
    case '*':
      return { words: values.flatMap((value) => value.split(',').flatMap((one) => [rest, one])) }
    case '&':
      return { background: filled(rest, values) }
    default:
      return { words: filled(rest, values) }
  }
}

function filled(text: string, values: readonly string[]): readonly string[] {
  const left = [...values]
  return text
    .split(' ')
    .filter((word) => word !== '')
    .map((word) => word.replaceAll(/[A-Z]+/g, (name) => left.shift() ?? name))
}

const words = (...all: readonly string[]): Meaning => ({ words: all })

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

/** The current directory is there anyway, and naming it twice is refused. */
function readable(text = '.'): Meaning {
  const others = text.split(',').filter((path) => !/^\.\/?$/.test(path))
  if (others.length === 0) return { needless: 'the current directory can be read' }
  return words(...others.flatMap((path) => ['--ro', path]))
}

const variable = (name = 'NAME', value?: string): Meaning =>
  words('--env', value === undefined ? name : `${name}=${value}`)
const device = (source = 'SRC', target = source): Meaning =>
  source.startsWith('/dev/') ? words('--device', source) : zone('rw', source, target)

const STDIN = 'stdin is always passed on'
const OWN_NAMESPACES = 'a run always has namespaces of its own'
const NOT_SHOWN = 'only what is named is shown'

type Row = readonly [spellings: string, values: 0 | 1 | 2, means: ForeignOption['means'], withValue?: Text]
const ROWS: readonly Row[] = [
  ['-v --volume', 1, volume],
  ['--mount', 1, mount],
  ['--bind --bind-try', 2, bind('rw')],
  ['--ro-bind --ro-bind-try', 2, bind('ro')],
  ['--dev-bind --dev-bind-try', 2, device],
  ['--dir', 1, '= --tmpfs DIR'],
  ['--whitelist --read-write', 1, '= --rw PATH', '* --rw'],
  ['--allow-write', 0, '= --rw .', '* --rw'],
  ['--allow-read', 0, readable],
  ['--read-only', 0, '- only --rw makes something writable', '= --ro PATH'],
  ['--readonly', 0, '- only --rw makes something writable'],
  ['--blacklist --deny-read --deny-write', 1, `- ${NOT_SHOWN}`],
  ['--symlink', 2, '- the links of the system are there'],
  ['--allow-run --allow-sys --allow-ffi --no-prompt', 0, '- every program that is shown can be run'],
  ['-A --allow-all', 0, '= --rw . --net host'],
  ['--private', 0, '- the home directory is an empty one', '= --rw PATH:/home/sandbox'],
  ['--private-home', 0, '- the home directory is an empty one'],
  ['--private-tmp --private-dev --private-etc --private-bin', 0, `- ${NOT_SHOWN}`],
  ['--proc --dev', 1, '- /proc and /dev are there'],

  ['-e', 1, '= --env NAME'],
  ['--setenv', 2, variable],
  ['--allow-env', 0, '= --env NAME', '* --env'],
  ['--unsetenv', 1, '- only variables that are named are passed on'],
  ['--clearenv', 0, '- only variables that are named are passed on'],
  ['--env-file', 1, '! name each variable (--env NAME=VALUE), or put them below env.set of a profile'],
  ['-w --cwd --chdir -C', 1, '= --workdir DIR'],
  ['-t', 0, '= --tty'],
  ['--gpus', 1, '= --gpu'],
  ['-i --interactive', 0, `- ${STDIN}`],
  ['-d --detach', 0, '&'],

  ['--network', 1, network],
  ['--unshare-net', 0, '= --net none'],
  ['--share-net', 0, '= --net host'],
  ['--allow-net', 0, '= --net record', '* --allow-host'],
  ['--deny-net', 0, '= --net none', '* --deny-host'],
  ['-p', 1, port],

  ['-m', 1, '= --memory SIZE'],
  ['--pids-limit', 1, '= --pids N'],
  ['--shm-size', 1, '= --shm SIZE'],
  ['--memory-swap', 1, '! --swap SIZE is the swap space on top of the memory'],
  ['--ulimit --oom-score-adj', 1, '! limits are --memory, --cpus, --pids and --timeout'],

  ['-u --user --uid --gid', 1, '- the command is never root'],
  ['--cap-drop --caps.drop', 1, '- the command has no capability'],
  ['--cap-add', 1, '! no capability can be given'],
  ['--privileged', 0, '! no capability can be given'],
  ['--security-opt', 1, securityOption],
  ['--noprofile', 0, '- the options say it all'],
  ['--nosound --no3d --novideo', 0, '- no device of this host is shown'],
  ['--nonewprivs --noroot', 0, '- the command is never root'],
  ['--unshare-all --unshare-user --unshare-ipc', 0, `- ${OWN_NAMESPACES}`],
  ['--unshare-pid --unshare-uts --unshare-cgroup', 0, `- ${OWN_NAMESPACES}`],
  ['--unshare-user-try --unshare-cgroup-try --as-pid-1', 0, `- ${OWN_NAMESPACES}`],
  ['--ipc --pid --uts --userns --cgroupns', 1, `- ${OWN_NAMESPACES}`],

  ['--rm', 0, '- nothing is left of a run'],
  ['--name', 1, '& --name NAME'],
  ['--restart --label --log-driver', 1, '- nothing of a run is kept'],
  ['--platform --pull', 1, '- the programs of this machine are there'],
  ['--hostname', 1, '- no name of this host is shown'],
  ['--new-session', 0, '- a command always has a session of its own'],
  ['--init', 0, '- a command always has an init'],
  ['--entrypoint', 1, '! what stands behind -- is the command'],
  ['--dry-run', 0, '= --plan'],
  ['--verbose --debug', 0, '= --log'],
  ['-q --quiet', 0, '- nothing is printed unless something is off'],
  ['--no-network --no-net --offline', 0, '= --net none'],
  ['--dns --dns-search', 1, '! names are resolved by this host: --add-host NAME=ADDRESS'],
  ['--settings', 1, '! a profile says it: --profile FILE'],
]

export const FOREIGN_OPTIONS: readonly ForeignOption[] = ROWS.map(([spellings, values, means, withValue]) => ({
  spellings: spellings.split(' '),
  values,
  means,
  ...(withValue !== undefined && { withValue }),
}))

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
  if (attached !== undefined) return { name, length: 1, meaning: meaningOf(option, valuesIn(attached, option)) }
  const values = line.slice(at + 1, at + 1 + option.values)
  const end = values.indexOf('--')
  const own = end === -1 ? values : values.slice(0, end)
  return { name, length: 1 + own.length, meaning: meaningOf(option, own) }
}

/** `--bind=SRC,DST` is firejail's. */
const valuesIn = (text: string, { values }: ForeignOption): readonly string[] =>
  values === 2 ? text.split(',') : [text]

function meaningOfCluster(word: string): Meaning {
  if (word.includes('d')) return { background: [] }
  return word.includes('t') ? words('--tty') : { needless: STDIN }
}

/** One finished line. @param printWord how a word is shown to be pasted */
export function foreignLine({ name, meaning }: Foreign, printWord: (word: string) => string): string {
  if ('words' in meaning) return `${name}: did you mean ${meaning.words.map(printWord).join(' ')}?`
  if ('background' in meaning)
    return `${name}: ${['llm-do run', ...meaning.background.map(printWord)].join(' ')} starts a command in the background.`
  return 'needless' in meaning ? `${name}: leave it out: ${meaning.needless}.` : `${name}: ${meaning.unserved}.`
}

/** Options with which an image is named next. */
const OF_CONTAINERS =
  /^(?:-[dit]+|-[vewpu]|--(?:rm|name|volume|detach|interactive|entrypoint|gpus|cap-(?:add|drop)|security-opt|platform|pull|network))$/
/** `node:20`, `ghcr.io/a/b`, and names under which no program goes. */
const IMAGE =
  /^(?:[a-z0-9][\w.-]*(?:\/[\w.-]+)*:[\w.-]+|[\w-]+\.[\w.-]+\/[\w./-]+|alpine|ubuntu|debian|fedora|archlinux|golang)$/

/** A first word that was written for `docker run`. */
export const isImage = (foreign: readonly Foreign[], word = ''): boolean =>
  foreign.some(({ name }) => OF_CONTAINERS.test(name)) && IMAGE.test(word)
