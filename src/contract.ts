/** The contract between the TypeScript and the C part. Made from native/contract.yaml by scripts/contract.mjs: change it there. Pure. */

/** first word of every launch file */
export const LAUNCH_FILE_MAGIC = 'llm-do-launch-2'
/** of the variables that are options */
export const KEY_VARIABLE_PREFIX = 'LLM_DO_EXEC_'
/** in a key, for every group of --env NAME=VALUE beside each other whose names no layer of the policy knows */
export const KEY_ANY_VARIABLES = '--env *='
/** in a given record, for all NAME=VALUE of the caller's words */
export const ANY_GIVEN = '*'
/** directories of the words of zones that can have slots; with more of them none has one */
export const PLACE_ZONES_MAX = 4
/** in a key, for every directory that the plan serves */
export const KEY_ANY_DIRECTORY = '*'
/** first byte of a slot in the words of a plan for any directory (native/lib/any-directory.h); no other word of it has that byte */
export const PLACE_SLOT = 1
/** entries of a directory and of those below it among which sockets and FIFOs are looked for */
export const PLACE_ENTRIES_MAX = 2000
/** in a key, for every program that needs no plan of its own; a directory is no program's name */
export const KEY_ANY_PROGRAM = '/'
/** of a shell's options; c takes a script, o the next word. Not h, which is ours, nor d, p, t and w, which are docker's */
export const SHELL_LETTERS = 'abcefilmnouvxBCEHT'
/** those for which bash is started */
export const BASH_LETTERS = 'loBEHT'
/** what runs the script of -c */
export const SHELL = '/bin/sh'
/** the same where it is installed and a letter asks for it */
export const BASH = '/bin/bash'
/** first word of every Node that we start: SIGUSR1 starts its debugger at an address that does not resolve, without asking a name server. --disable-sigusr1 is missing in Node 20, and would keep the signal from the command */
export const NODE_WITHOUT_DEBUGGER = '--inspect-port=[::1%no-debugger]:1024'
/** descriptor of launch, the pool keeper and the guard program: the launch file */
export const LAUNCH_FILE_FD = 3
/** descriptor of launch: the socket of its caller, which speaks frames; in a pool its keeper's, for single bytes and the status line; of a fork server its owner's, which gets one byte. Its end of file means that the caller is gone */
export const RUN_FD = 4
/** descriptor of a fork server: its socket, for a look by /proc/PID/fd */
export const FORK_SERVER_FD = 5
/** bytes of stdin in one frame */
export const FRAME_DATA_MAX = 65536
/** where the stager mounts the tree, in a mount namespace of its own: every Linux system has it, everybody may enter it, and nothing in the chain needs it */
export const STAGING_DIRECTORY = '/sys'
/** init in the root of the tree */
export const INIT_NAME = '.init'
/** of a restricted sandbox: source of its connections, its name server, and where diverted connections arrive */
export const NET_ADDRESS = '198.18.0.1'
/** the host's own loopback, on the ports that the policy names */
export const NET_LOCAL_NAME = 'host.llm-do.internal'
/** addresses that mean the sandbox itself, or nobody */
export const NET_OWN_RANGES = '127.0.0.0/8 0.0.0.0/8 198.18.0.0/15 224.0.0.0/3 ::/127 2001:2::/48 ff00::/8'
/** HTTP proxy of a restricted sandbox, on NET_ADDRESS */
export const NET_PROXY_PORT = 3128
/** its SOCKS 5 proxy */
export const NET_SOCKS_PORT = 1080
/** version of Landlock from which on files can be renamed between directories */
export const LANDLOCK_RENAMES = 2
/** from which on abstract sockets and signals are kept in (Linux 6.12) */
export const LANDLOCK_SCOPES = 6
/** from which on connecting to a UNIX socket by its path can be refused (Linux 7.1) */
export const LANDLOCK_CLOSES_SOCKETS = 9
/** processes of ours in a run's cgroup at its start: bwrap or the stager, and init */
export const GROUP_PROCESSES_START = 2
/** the same while the command runs under bwrap, whose monitor stays */
export const GROUP_PROCESSES_BWRAP = 2
/** the same without an engine program: init */
export const GROUP_PROCESSES_UNSHARE = 1
/** processes of ours in the sandbox's own user namespace, where RLIMIT_NPROC counts: init */
export const NAMESPACE_PROCESSES = 1
/** first word of a record of a failed run; then the exit status, none or given for stdin, the directory, and the words of exec */
export const FAILED_RUN_MAGIC = 'llm-do-failed-1'
/** where these are, next to the directory of live runs */
export const FAILED_RUNS_DIRECTORY = 'failed'
/** so many of them are kept */
export const FAILED_RUNS_MAX = 16
/** exit status of a run that its deadline ended */
export const EXIT_TIMEOUT = 124
/** of a run that was never started */
export const EXIT_SETUP = 125
export const EXIT_NOT_EXECUTABLE = 126
/** of a run that was ended for what it made at a protected path */
export const EXIT_PROTECTED = 126
export const EXIT_NOT_FOUND = 127
/** 128 + SIGKILL: a limit ended it, or nothing reported its end */
export const EXIT_KILLED = 137

/** Verb of a launch file entry -> number of its words, which native/contract.yaml describes. The writer adds `end`. */
export const VERBS = {
  engine: 1,
  word: 1,
  identity: 3,
  hostname: 1,
  net: 1,
  'net-name': 2,
  'net-by': 1,
  'net-divert': 2,
  'net-listen': 2,
  'net-host': 3,
  'net-publish': 3,
  'net-allow': 3,
  'net-deny': 3,
  'net-proxy': 0,
  'net-terminate': 2,
  'net-upstream': 3,
  'net-direct': 3,
  'net-grants': 1,
  directory: 2,
  symlink: 2,
  file: 3,
  tmpfs: 4,
  bind: 2,
  zone: 6,
  node: 5,
  replace: 2,
  'cgroup-view': 1,
  cow: 3,
  protect: 3,
  git: 3,
  home: 2,
  hide: 3,
  linked: 2,
  readonly: 1,
  mask: 1,
  'proc-file': 2,
  landlock: 1,
  seccomp: 1,
  observe: 1,
  rlimit: 3,
  workdir: 1,
  terminal: 1,
  affinity: 1,
  cgroup: 1,
  set: 2,
  narrow: 2,
  watch: 1,
  'rw-size': 1,
  'cpu-time': 1,
  deadline: 1,
  runs: 1,
  serve: 1,
  profile: 1,
  caller: 1,
  'keep-errors': 0,
  keep: 1,
  since: 2,
  boot: 1,
  check: 1,
  key: 1,
  at: 2,
  content: 2,
  variable: 2,
  given: 1,
  locale: 2,
  inherit: 1,
  slots: 3,
  apart: 2,
  step: 1,
  device: 2,
  quiet: 1,
  unset: 1,
  default: 2,
  rule: 4,
  token: 1,
  syntax: 1,
  pool: 1,
  parent: 0,
  capture: 1,
  result: 2,
  audit: 2,
  reason: 3,
  denial: 6,
  apply: 1,
  isolation: 1,
  warning: 1,
} as const

/** Kinds of frame. */
export const FRAME = {
  /** struct inherited */
  caller: 1,
  /** the command: argc, envc, its umask, then the words, each ended by NUL, as for init */
  run: 2,
  /** int32: a signal that the client got */
  signal: 3,
  /** the command's stdin, at most FRAME_DATA_MAX, the first unasked, then one for each want; empty = its end */
  input: 4,
  /** a launch file: its at and content entries must hold, and a warm sandbox must have been built from the rest, if there is any, or the command is refused */
  guards: 5,
  /** the seal of the client's plan, which must be the one that a warm sandbox was built from, or the command is refused */
  same: 7,
  /** to a blank sandbox, before all else about its plan: the directories (places_write of native/lib/any-directory.h) */
  places: 9,
  /** to a blank sandbox, with same: uint64, a time of CLOCK_MONOTONIC; since then its client has found that all is on disk from which the plan was made */
  looked: 10,
  /** to a fork server, first of all: how the streams go (output or all), or warm for a sandbox that waits for its command, ended by NUL, then the launch file */
  plan: 6,
  /** int32: a signal for the command, by which the run ends */
  stop: 8,
  /** a warm sandbox that a fork server has started waits for its command */
  ready: 22,
  /** from now on the command may have been started */
  taken: 16,
  /** the command was not and will not be started, even if it had been taken */
  refused: 17,
  /** what came is with the command: room for one more input */
  want: 18,
  /** the command's stdout */
  output: 19,
  /** the command's stderr */
  errors: 20,
  /** uint32 exit status, then launch's line of JSON; the last frame */
  status: 21,
} as const

/** How a run ended. */
export const REASONS = [
  'exit',
  'signal',
  'timeout',
  'memory',
  'cpu-time',
  'disk',
  'pids',
  'seccomp',
  'denied',
  'setup',
  'cancelled',
  'lost',
  'protected',
] as const
export type Reason = (typeof REASONS)[number]

/** Why the command was not executed: errno -> code of the error, words, hint. */
export const EXEC_FAILURES = {
  ENOENT: {
    code: 'COMMAND_NOT_FOUND',
    what: 'not found in the sandbox',
    hint: 'check the name (-c runs a line of shell); a program outside /usr becomes visible with --ro DIRECTORY, what is searched is shown by --plan',
  },
  interpreter: {
    code: 'COMMAND_NOT_EXECUTABLE',
    what: 'its interpreter is not there',
    hint: 'look at its #! line (or: file COMMAND); an interpreter outside /usr becomes visible with --ro DIRECTORY',
  },
  EACCES: {
    code: 'COMMAND_NOT_EXECUTABLE',
    what: 'permission denied',
    hint: 'give it the execute bit (chmod +x), or run it through its interpreter',
  },
  EISDIR: {
    code: 'COMMAND_NOT_EXECUTABLE',
    what: 'is a directory',
    hint: 'name a program',
  },
  ENOEXEC: {
    code: 'COMMAND_NOT_EXECUTABLE',
    what: 'not a program of this machine: wrong architecture, or a script without a #! line',
    hint: 'start a script through its interpreter, for example: sh SCRIPT',
  },
  ENOTDIR: {
    code: 'COMMAND_NOT_FOUND',
    what: 'a part of its path is not a directory',
    hint: 'check the path',
  },
  ELOOP: {
    code: 'COMMAND_NOT_EXECUTABLE',
    what: 'too many symbolic links',
    hint: 'check where its links lead',
  },
  ETXTBSY: {
    code: 'COMMAND_NOT_EXECUTABLE',
    what: 'the file is open for writing',
    hint: 'close it first',
  },
  E2BIG: {
    code: 'COMMAND_NOT_EXECUTABLE',
    what: 'arguments and environment are too long',
    hint: 'pass long input by stdin or by a file in a zone',
  },
  ENOMEM: {
    code: 'COMMAND_NOT_EXECUTABLE',
    what: 'not enough memory to load it',
    hint: 'raise --memory or resources.memory',
  },
} as const

/** Signals of Linux by number, from 1 on. */
export const SIGNALS = [
  'SIGHUP',
  'SIGINT',
  'SIGQUIT',
  'SIGILL',
  'SIGTRAP',
  'SIGABRT',
  'SIGBUS',
  'SIGFPE',
  'SIGKILL',
  'SIGUSR1',
  'SIGSEGV',
  'SIGUSR2',
  'SIGPIPE',
  'SIGALRM',
  'SIGTERM',
  'SIGSTKFLT',
  'SIGCHLD',
  'SIGCONT',
  'SIGSTOP',
  'SIGTSTP',
  'SIGTTIN',
  'SIGTTOU',
  'SIGURG',
  'SIGXCPU',
  'SIGXFSZ',
  'SIGVTALRM',
  'SIGPROF',
  'SIGWINCH',
  'SIGIO',
  'SIGPWR',
  'SIGSYS',
] as const
/** No message names these. */
export const QUIET_SIGNALS = [
  'SIGPIPE',
  'SIGINT',
  'SIGTERM',
  'SIGHUP',
] as const

/** A file that a command made at a protected path: where it is now, or that it is gone. */
export interface Attempt {
  readonly path: string
  readonly aside: string
  readonly gone: boolean
}

/** Results of the attempts to reach a host. */
export const NET_VERDICTS = [
  'allowed',
  'not-listed',
  'denied',
  'not-public',
  'unreachable',
  'too-many',
  'published',
  'unresolved',
  'granted',
] as const
export type NetVerdict = (typeof NET_VERDICTS)[number]

/** A host and port that a restricted command has reached, or tried to. */
export interface ReachedHost {
  readonly host: string
  /** 0: only the name was asked for. */
  readonly port: number
  readonly verdict: NetVerdict
  /** That decided, as the policy has it; of `not-public` the address; else empty. */
  readonly rule: string
  /** Or questions for the name, or attempts. */
  readonly connections: number
  /** As the command sees it. */
  readonly bytesIn: number
  readonly bytesOut: number
}

/** Kinds of refusal. */
export type Observation = 'read-only' | 'hidden-read' | 'hidden-write' | 'hidden-create' | 'hidden-execute' | 'hidden-socket' | 'unreachable'

/** One thing that was refused, and how often. */
export interface Observed {
  readonly what: Observation
  /** Inside; or ADDRESS:PORT. */
  readonly path: string
  readonly count: number
  /** Its number among all observed calls, the last time. */
  readonly last: number
}

/** Launch's line of JSON. Times are CLOCK_MONOTONIC; -1 means that the counter is missing. */
export interface LaunchStatus {
  readonly reason: Reason
  readonly code: string
  readonly exitCode: number
  readonly signal: number
  readonly exitStatus: number
  readonly cancelledBy: number
  readonly errno: number
  readonly step: string
  readonly path: string
  readonly detail: string
  readonly begunNs: number
  readonly startedNs: number
  readonly endedNs: number
  readonly cpuUs: number
  readonly peakMemory: number
  readonly peakPids: number
  readonly readBytes: number
  readonly writeBytes: number
  readonly oomKills: number
  readonly pidsRefused: number
  readonly throttledUs: number
  readonly killed: number
  readonly attempts?: number
  readonly protected?: readonly Attempt[]
  readonly setIds?: number
  readonly setId?: readonly string[]
  readonly hidden?: number
  readonly hiddenPaths?: readonly string[]
  readonly configLocked?: boolean
  readonly unwatched?: boolean
  readonly network?: readonly ReachedHost[]
  readonly networkOmitted?: number
  readonly networkLost?: boolean
  readonly full?: readonly string[]
  readonly observed?: readonly Observed[]
  readonly observedOmitted?: number
  readonly observedUnread?: number
  readonly observerLost?: boolean
  readonly said?: string
  readonly zonesGrown?: boolean
  readonly layer?: string
}

/** Options whose value is SRC[:TARGET]. */
export const PLACE_OPTIONS = [
  '--ro',
  '--rw',
  '--cow',
] as const
/** The first words of a key: who calls. */
export const KEY_CALLER = [
  'version',
  'root',
  'uid',
  'gid',
  'boot',
  'cgroup',
  'capabilities',
  'user-namespace',
  'mount-namespace',
] as const
/** The words after them: where. */
export const KEY_PLACE = [
  'directory',
  'terminal',
] as const
/** Variables that decide about a plan. */
export const KEY_VARIABLES = [
  'PATH',
  'HOME',
  'XDG_CONFIG_HOME',
  'XDG_CACHE_HOME',
  'XDG_STATE_HOME',
  'XDG_RUNTIME_DIR',
  'SSH_AUTH_SOCK',
  'ENABLE_DOCKER',
  'DOCKER_TIMEOUT',
  'DOCKER_MEMORY_LIMIT',
  'DOCKER_CPU_LIMIT',
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'REQUESTS_CA_BUNDLE',
  'GIT_SSL_CAINFO',
  'CURL_CA_BUNDLE',
] as const
/** One of them is in every path of a toolchain. */
export const TOOLCHAIN_WORDS = [
  '.asdf',
  '.bun',
  '.cargo',
  '.conda',
  '.deno',
  '.dotnet',
  '.gem',
  '.ghcup',
  '.goenv',
  '.jdks',
  '.jenv',
  '.juliaup',
  '.linuxbrew',
  '.local',
  '.nimble',
  '.nodenv',
  '.npm-global',
  '.nvm',
  '.opam',
  '.pixi',
  '.pyenv',
  '.rbenv',
  '.rustup',
  '.rye',
  '.sdkman',
  '.volta',
  '.yarn',
  'anaconda',
  'anaconda3',
  'cargo',
  'fnm',
  'go',
  'mambaforge',
  'micromamba',
  'miniconda',
  'miniconda3',
  'miniforge3',
  'nix',
  'opt',
  'sdk',
] as const
/** Operators by which a shell starts another command. */
export const SHELL_WORDS = [
  '!',
  '.',
  ':',
  'if',
  'then',
  'else',
  'elif',
  'fi',
  'for',
  'while',
  'until',
  'do',
  'done',
  'case',
  'esac',
  'eval',
  'exec',
  'source',
  'command',
  'builtin',
  'trap',
  'alias',
  'set',
  'time',
  'function',
  'coproc',
  'select',
] as const
/** Options of bash, before a script; none is one of our options. */
export const BASH_OPTIONS = [
  '--login',
  '--noprofile',
  '--norc',
  '--posix',
] as const
