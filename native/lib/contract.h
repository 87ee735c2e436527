/* Made from native/contract.yaml by scripts/contract.mjs: change it there. */
#pragma once

#define LAUNCH_FILE_MAGIC "llm-do-launch-2" /* first word of every launch file */
#define KEY_VARIABLE_PREFIX "LLM_DO_EXEC_" /* of the variables that are options */
#define KEY_ANY_VARIABLES "--env *=" /* in a key, for every group of --env NAME=VALUE beside each other whose names no layer of the policy knows */
#define ANY_GIVEN "*" /* in a given record, for all NAME=VALUE of the caller's words */
#define PLACE_ZONES_MAX 4 /* directories of the words of zones that can have slots; with more of them none has one */
#define KEY_ANY_DIRECTORY "*" /* in a key, for every directory that the plan serves */
#define PLACE_SLOT 1 /* first byte of a slot in the words of a plan for any directory (native/lib/any-directory.h); no other word of it has that byte */
#define PLACE_ENTRIES_MAX 2000 /* entries of a directory and of those below it among which sockets and FIFOs are looked for */
#define KEY_ANY_PROGRAM "/" /* in a key, for every program that needs no plan of its own; a directory is no program's name */
#define SHELL_LETTERS "abcefilmnouvxBCEHT" /* of a shell's options; c takes a script, o the next word. Not h, which is ours, nor d, p, t and w, which are docker's */
#define BASH_LETTERS "loBEHT" /* those for which bash is started */
#define SHELL "/bin/sh" /* what runs the script of -c */
#define BASH "/bin/bash" /* the same where it is installed and a letter asks for it */
#define NODE_WITHOUT_DEBUGGER "--inspect-port=[::1%no-debugger]:1024" /* first word of every Node that we start: SIGUSR1 starts its debugger at an address that does not resolve, without asking a name server. --disable-sigusr1 is missing in Node 20, and would keep the signal from the command */
#define LAUNCH_FILE_FD 3 /* descriptor of launch, the pool keeper and the guard program: the launch file */
#define RUN_FD 4 /* descriptor of launch: the socket of its caller, which speaks frames; in a pool its keeper's, for single bytes and the status line; of a fork server its owner's, which gets one byte. Its end of file means that the caller is gone */
#define FORK_SERVER_FD 5 /* descriptor of a fork server: its socket, for a look by /proc/PID/fd */
#define TERMINATOR_FD 5 /* descriptor of launch where a launch file has net-terminate: the terminator's channel, for the helper net */
#define FRAME_DESCRIPTORS_MAX 4 /* that come with a command: three streams, and the gate of a warm sandbox */
#define FRAME_DATA_MAX 65536 /* bytes of stdin in one frame */
#define FRAME_RUN_MAX 16777216 /* bytes of a command block: more than the kernel takes for argv and environment together (6 MiB) */
#define STAGING_DIRECTORY "/sys" /* where the stager mounts the tree, in a mount namespace of its own: every Linux system has it, everybody may enter it, and nothing in the chain needs it */
#define EMPTY_FILE "/.hidden/file" /* what is mounted over a hidden file */
#define EMPTY_DIRECTORY "/.hidden/directory" /* likewise over a directory */
#define INIT_NAME ".init" /* init in the root of the tree */
#define NET_ADDRESS "198.18.0.1" /* of a restricted sandbox: source of its connections, its name server, and where diverted connections arrive */
#define NET_ADDRESS_V6 "2001:2::1" /* the same for listed IPv6 addresses (RFC 5180, benchmarks) */
#define NET_LOCAL_NAME "host.llm-do.internal" /* the host's own loopback, on the ports that the policy names */
#define NET_POOL "198.18.0.0/15" /* addresses that stand for names (RFC 2544, benchmarks: no host has one, and browsers take them for public) */
#define NET_OWN_RANGES "127.0.0.0/8 0.0.0.0/8 198.18.0.0/15 224.0.0.0/3 ::/127 2001:2::/48 ff00::/8" /* addresses that mean the sandbox itself, or nobody */
#define NET_DIVERT_PORT 1 /* where diverted connections arrive */
#define NET_PROXY_PORT 3128 /* HTTP proxy of a restricted sandbox, on NET_ADDRESS */
#define NET_SOCKS_PORT 1080 /* its SOCKS 5 proxy */
#define LANDLOCK_RENAMES 2 /* version of Landlock from which on files can be renamed between directories */
#define LANDLOCK_SCOPES 6 /* from which on abstract sockets and signals are kept in (Linux 6.12) */
#define LANDLOCK_CLOSES_SOCKETS 9 /* from which on connecting to a UNIX socket by its path can be refused (Linux 7.1) */
#define GROUP_PROCESSES_START 2 /* processes of ours in a run's cgroup at its start: bwrap or the stager, and init */
#define GROUP_PROCESSES_BWRAP 2 /* the same while the command runs under bwrap, whose monitor stays */
#define GROUP_PROCESSES_UNSHARE 1 /* the same without an engine program: init */
#define NAMESPACE_PROCESSES 1 /* processes of ours in the sandbox's own user namespace, where RLIMIT_NPROC counts: init */
#define FAILED_RUN_MAGIC "llm-do-failed-1" /* first word of a record of a failed run; then the exit status, none or given for stdin, the directory, and the words of exec */
#define FAILED_RUNS_DIRECTORY "failed" /* where these are, next to the directory of live runs */
#define FAILED_RUNS_MAX 16 /* so many of them are kept */
#define EXIT_TIMEOUT 124 /* exit status of a run that its deadline ended */
#define EXIT_SETUP 125 /* of a run that was never started */
#define EXIT_NOT_EXECUTABLE 126
#define EXIT_PROTECTED 126 /* of a run that was ended for what it made at a protected path */
#define EXIT_NOT_FOUND 127
#define EXIT_KILLED 137 /* 128 + SIGKILL: a limit ended it, or nothing reported its end */

/* Verbs of a launch file entry: ROW(verb, name, number of words) */
#define VERB_TABLE(ROW) \
  ROW(V_ENGINE, "engine", 1) /* bwrap|unshare|none; read by launch, stager, init; none: no namespaces, and the host's own tree (sandbox/host-root.h) */ \
  ROW(V_WORD, "word", 1) /* WORD; read by stager; bwrap's argv, its path first */ \
  ROW(V_IDENTITY, "identity", 3) /* self|fresh UID GID; read by stager; ids inside */ \
  ROW(V_HOSTNAME, "hostname", 1) /* NAME; read by stager; engine unshare */ \
  ROW(V_NET, "net", 1) /* none|restricted|host; read by launch, stager, init */ \
  ROW(V_NET_NAME, "net-name", 2) /* ADDRESSES PATTERN; read by net; addresses that stand for a name inside, or for those below one (*.NAME) */ \
  ROW(V_NET_BY, "net-by", 1) /* nftables|listeners; read by stager, init; what takes connections to the helper net */ \
  ROW(V_NET_DIVERT, "net-divert", 2) /* ADDRESSES PORT|*; read by stager, init; connections that go to the helper net */ \
  ROW(V_NET_LISTEN, "net-listen", 2) /* ADDRESS PORT; read by stager, init; a listener for the helper: in the place of nftables, where the address may mean all (0.0.0.0, ::), and for a port of the loopback that leads to the host */ \
  ROW(V_NET_HOST, "net-host", 3) /* NAME ADDRESS PORTS|none; read by net; where a name leads, one entry an address; PORTS: on these the address needs no rule of its own */ \
  ROW(V_NET_PUBLISH, "net-publish", 3) /* ADDRESS PORT INSIDE; read by net, stager, init; a server inside, on its port INSIDE, for clients of the host */ \
  ROW(V_NET_ALLOW, "net-allow", 3) /* PATTERN PORTS|* RULE; read by net; a name, *.NAME or ADDRESSES; RULE as the policy has it */ \
  ROW(V_NET_DENY, "net-deny", 3) /* PATTERN PORTS|* RULE; read by net */ \
  ROW(V_NET_PROXY, "net-proxy", 0) /* read by stager, init; HTTP and SOCKS proxies are there */ \
  ROW(V_NET_TERMINATE, "net-terminate", 2) /* NAME PORT; read by launch, net; connections that go to the terminator */ \
  ROW(V_NET_UPSTREAM, "net-upstream", 3) /* HOST PORT AUTHORIZATION|none; read by net; the operator's proxy, through which hosts are reached; launch hides the last word from all others */ \
  ROW(V_NET_DIRECT, "net-direct", 3) /* PATTERN PORTS|* RULE; read by net; hosts that are reached without it */ \
  ROW(V_NET_GRANTS, "net-grants", 1) /* later|ask; read by launch, net; the owner of the run may allow more hosts (net/grants.h); ask: connections to other hosts wait for an answer */ \
  ROW(V_DIRECTORY, "directory", 2) /* TARGET MODE; read by stager */ \
  ROW(V_SYMLINK, "symlink", 2) /* TARGET LINK; read by stager */ \
  ROW(V_FILE, "file", 3) /* TARGET MODE CONTENT; read by stager */ \
  ROW(V_TMPFS, "tmpfs", 4) /* TARGET SIZE INODES MODE; read by stager, init; init for Landlock */ \
  ROW(V_BIND, "bind", 2) /* SOURCE TARGET; read by stager; the system tree, read-only */ \
  ROW(V_ZONE, "zone", 6) /* SOURCE TARGET ro|rw|cow|copy DEV INO open|closed; read by stager, init; copy-on-write by an overlay or by a copy; UNIX sockets in it open or closed */ \
  ROW(V_NODE, "node", 5) /* SOURCE TARGET DEV INO NUMBER; read by stager; a character device of the host, below /dev; NUMBER: its own */ \
  ROW(V_REPLACE, "replace", 2) /* SOURCE TARGET; read by stager; a file of the tree in the place of another one of it, read-only */ \
  ROW(V_CGROUP_VIEW, "cgroup-view", 1) /* DIRECTORY; read by stager; a cgroup file system is mounted there, and covered by what the tree has there */ \
  ROW(V_COW, "cow", 3) /* DIRECTORY new|ID BYTES; read by launch; where the layers of copy-on-write zones are kept, which one is gone on with, and most bytes of it (0 = no limit) */ \
  ROW(V_PROTECT, "protect", 3) /* SOURCE TARGET PATH; read by launch, layers; a path below the zone */ \
  ROW(V_GIT, "git", 3) /* SOURCE TARGET OPEN; read by launch; git directories of the zone; the names in them that stay open */ \
  ROW(V_HOME, "home", 2) /* DIRECTORY NAMES; read by launch, layers; the caller's home; links at these names in it, which are separated by blanks, lead to what is protected */ \
  ROW(V_HIDE, "hide", 3) /* SOURCE TARGET PATTERN; read by launch, stager; what the command finds empty in a zone of any mode (lib/hide.h) */ \
  ROW(V_LINKED, "linked", 2) /* DEV INO; read by launch; a file whose other names count */ \
  ROW(V_READONLY, "readonly", 1) /* PATH; read by init; below /proc */ \
  ROW(V_MASK, "mask", 1) /* PATH; read by init; below /proc */ \
  ROW(V_PROC_FILE, "proc-file", 2) /* SOURCE PATH; read by init; a file of the tree in the place of one below /proc, read-only */ \
  ROW(V_LANDLOCK, "landlock", 1) /* on|off; read by init */ \
  ROW(V_SECCOMP, "seccomp", 1) /* FILTER|off; read by init; hexadecimal */ \
  ROW(V_OBSERVE, "observe", 1) /* acts|all; read by launch, init; what the sandbox refuses is noted; all: also to calls that only ask about a file */ \
  ROW(V_RLIMIT, "rlimit", 3) /* NUMBER SOFT HARD; read by init */ \
  ROW(V_WORKDIR, "workdir", 1) /* PATH; read by init */ \
  ROW(V_TERMINAL, "terminal", 1) /* on|off; read by launch, init */ \
  ROW(V_AFFINITY, "affinity", 1) /* COUNT; read by launch, init; processors; the command cannot change which */ \
  ROW(V_CGROUP, "cgroup", 1) /* PARENT; read by launch; a directory */ \
  ROW(V_SET, "set", 2) /* FILE VALUE; read by launch; of the run's cgroup */ \
  ROW(V_NARROW, "narrow", 2) /* FILE VALUE; read by launch; the same, as soon as the stager has gone */ \
  ROW(V_WATCH, "watch", 1) /* BYTES; read by launch; memory watchdog */ \
  ROW(V_RW_SIZE, "rw-size", 1) /* BYTES; read by launch; by how much writable zones may grow */ \
  ROW(V_CPU_TIME, "cpu-time", 1) /* MILLISECONDS; read by launch */ \
  ROW(V_DEADLINE, "deadline", 1) /* MILLISECONDS; read by launch */ \
  ROW(V_RUNS, "runs", 1) /* DIRECTORY; read by launch; run records */ \
  ROW(V_SERVE, "serve", 1) /* DIRECTORY; read by launch, init; other commands of the user's may be run in the sandbox while it lives; where they are asked for (native/lib/exec-in-socket.h) */ \
  ROW(V_PROFILE, "profile", 1) /* NAME; read by launch; for people (llm-do ps) */ \
  ROW(V_CALLER, "caller", 1) /* DIRECTORY; read by launch; for people: where the run was asked for */ \
  ROW(V_KEEP_ERRORS, "keep-errors", 0) /* read by launch; the end of stderr is kept for the report, unless that is a terminal */ \
  ROW(V_KEEP, "keep", 1) /* MILLISECONDS; read by layers; how long the layer waits to be applied */ \
  ROW(V_SINCE, "since", 2) /* SECONDS NANOSECONDS; read by layers; CLOCK_REALTIME_COARSE before the zones were mounted */ \
  ROW(V_BOOT, "boot", 1) /* ID; read by layers; the boot in which the layer was made; a crash may have lost what that kernel had not written to the disk */ \
  ROW(V_CHECK, "check", 1) /* SEAL; read by client; of all bytes after this entry */ \
  ROW(V_KEY, "key", 1) /* WORD; read by client; what the file was made for */ \
  ROW(V_AT, "at", 2) /* PATH IDENTITY; read by client; what must be there */ \
  ROW(V_CONTENT, "content", 2) /* PATH IDENTITY; read by client; what must be in there */ \
  ROW(V_VARIABLE, "variable", 2) /* NAME VALUE; read by client; of the command's environment */ \
  ROW(V_GIVEN, "given", 1) /* NAME; read by client; of the command's environment, with the value of the caller's --env NAME=VALUE */ \
  ROW(V_LOCALE, "locale", 2) /* NAME VALUE; read by client; unless the caller has one */ \
  ROW(V_INHERIT, "inherit", 1) /* NAME; read by client; or PREFIX*, taken from the caller */ \
  ROW(V_SLOTS, "slots", 3) /* COUNT PLAN POOL; read by client, launch; how many directories have slots; SHA-256 of the plan and of what a warm sandbox is built from, before the slots are filled */ \
  ROW(V_APART, "apart", 2) /* within|above PATH; read by client, launch; none of the directories is PATH, or below it or above it */ \
  ROW(V_STEP, "step", 1) /* PATH; read by client, launch; the path of none ends with this one, with which names of protected files begin */ \
  ROW(V_DEVICE, "device", 2) /* PLACE DEV; read by client, launch; the directory of that number is on this one */ \
  ROW(V_QUIET, "quiet", 1) /* PLACE; read by client, launch; no socket and no FIFO is found in the directory of that number */ \
  ROW(V_UNSET, "unset", 1) /* NAME; read by client; a variable that the caller must not have */ \
  ROW(V_DEFAULT, "default", 2) /* run|ask|block BY; read by client; of a plan under a worker: what is said of a command that no rule matches; BY is for the audit log */ \
  ROW(V_RULE, "rule", 4) /* run|ask|block prefix|exact COUNT BY; read by client; of the worker, followed by so many token entries; the first that matches counts */ \
  ROW(V_TOKEN, "token", 1) /* WORD; read by client; a word of a rule */ \
  ROW(V_SYNTAX, "syntax", 1) /* BY; read by client; the text of -c may use shell syntax: each command of a list or pipe is judged; BY answers for people, where somebody does */ \
  ROW(V_POOL, "pool", 1) /* NAME; read by client; the pool that may serve the plan */ \
  ROW(V_PARENT, "parent", 0) /* read by client; the run ends with the process that started the client */ \
  ROW(V_CAPTURE, "capture", 1) /* BYTES|all; read by client; most that is kept of each stream */ \
  ROW(V_RESULT, "result", 2) /* native|shell|task MEMBERS; read by client; the form of the JSON result, and those of its members that the plan knows, as text */ \
  ROW(V_AUDIT, "audit", 2) /* FILE MEMBERS; read by client; the log that the run is appended to, and likewise the members of its line */ \
  ROW(V_REASON, "reason", 3) /* REASON MESSAGE HINT; read by client; the plan's words for a run that ended so; empty where it has none */ \
  ROW(V_DENIAL, "denial", 6) /* REASON LAYER OPERATION TARGET FIX KEY; read by client; what a run was refused that ended so */ \
  ROW(V_APPLY, "apply", 1) /* DIRECTORY; read by client; changes to copy-on-write zones are applied where the command has succeeded; one of all directories for layers */ \
  ROW(V_ISOLATION, "isolation", 1) /* LINE; read by client; what --log prints */ \
  ROW(V_WARNING, "warning", 1) /* LINE; read by client; printed on stderr before the command starts */ \
  ROW(V_END, "end", 0) /* read by all; the last entry */

#define ROW(member, ...) member,
enum verb { VERB_TABLE(ROW) VERBS };
#undef ROW

#define ENTRY_WORDS_MAX 6

/* Kinds of frame. */
enum frame_kind {
  FRAME_CALLER = 1, /* struct inherited */
  FRAME_RUN = 2, /* the command: argc, envc, its umask, then the words, each ended by NUL, as for init */
  FRAME_SIGNAL = 3, /* int32: a signal that the client got */
  FRAME_INPUT = 4, /* the command's stdin, at most FRAME_DATA_MAX, the first unasked, then one for each want; empty = its end */
  FRAME_GUARDS = 5, /* a launch file: its at and content entries must hold, and a warm sandbox must have been built from the rest, if there is any, or the command is refused */
  FRAME_SAME = 7, /* the seal of the client's plan, which must be the one that a warm sandbox was built from, or the command is refused */
  FRAME_PLACES = 9, /* to a blank sandbox, before all else about its plan: the directories (places_write of native/lib/any-directory.h) */
  FRAME_LOOKED = 10, /* to a blank sandbox, with same: uint64, a time of CLOCK_MONOTONIC; since then its client has found that all is on disk from which the plan was made */
  FRAME_PLAN = 6, /* to a fork server, first of all: how the streams go (output or all), or warm for a sandbox that waits for its command, ended by NUL, then the launch file */
  FRAME_STOP = 8, /* int32: a signal for the command, by which the run ends */
  FRAME_READY = 22, /* a warm sandbox that a fork server has started waits for its command */
  FRAME_TAKEN = 16, /* from now on the command may have been started */
  FRAME_REFUSED = 17, /* the command was not and will not be started, even if it had been taken */
  FRAME_WANT = 18, /* what came is with the command: room for one more input */
  FRAME_OUTPUT = 19, /* the command's stdout */
  FRAME_ERRORS = 20, /* the command's stderr */
  FRAME_STATUS = 21, /* uint32 exit status, then launch's line of JSON; the last frame */
};

/* How a run ended. */
#define REASON_TABLE(ROW) \
  ROW(REASON_EXIT, "exit") \
  ROW(REASON_SIGNAL, "signal") \
  ROW(REASON_TIMEOUT, "timeout") \
  ROW(REASON_MEMORY, "memory") \
  ROW(REASON_CPU_TIME, "cpu-time") \
  ROW(REASON_DISK, "disk") \
  ROW(REASON_PIDS, "pids") \
  ROW(REASON_SECCOMP, "seccomp") \
  ROW(REASON_DENIED, "denied") \
  ROW(REASON_SETUP, "setup") \
  ROW(REASON_CANCELLED, "cancelled") \
  ROW(REASON_LOST, "lost") \
  ROW(REASON_PROTECTED, "protected")

#define ROW(member, ...) member,
enum reason { REASON_TABLE(ROW) REASONS };
#undef ROW

/* Why the command was not executed: ROW(errno, code of the error, words, hint) */
#define EXEC_INTERPRETER (-1)
#define EXEC_FAILURE_TABLE(ROW) \
  ROW(ENOENT, "COMMAND_NOT_FOUND", "not found in the sandbox", "check the name (-c runs a line of shell); a program outside /usr becomes visible with --ro DIRECTORY, what is searched is shown by --plan") \
  ROW(EXEC_INTERPRETER, "COMMAND_NOT_EXECUTABLE", "its interpreter is not there", "look at its #! line (or: file COMMAND); an interpreter outside /usr becomes visible with --ro DIRECTORY") \
  ROW(EACCES, "COMMAND_NOT_EXECUTABLE", "permission denied", "give it the execute bit (chmod +x), or run it through its interpreter") \
  ROW(EISDIR, "COMMAND_NOT_EXECUTABLE", "is a directory", "name a program") \
  ROW(ENOEXEC, "COMMAND_NOT_EXECUTABLE", "not a program of this machine: wrong architecture, or a script without a #! line", "start a script through its interpreter, for example: sh SCRIPT") \
  ROW(ENOTDIR, "COMMAND_NOT_FOUND", "a part of its path is not a directory", "check the path") \
  ROW(ELOOP, "COMMAND_NOT_EXECUTABLE", "too many symbolic links", "check where its links lead") \
  ROW(ETXTBSY, "COMMAND_NOT_EXECUTABLE", "the file is open for writing", "close it first") \
  ROW(E2BIG, "COMMAND_NOT_EXECUTABLE", "arguments and environment are too long", "pass long input by stdin or by a file in a zone") \
  ROW(ENOMEM, "COMMAND_NOT_EXECUTABLE", "not enough memory to load it", "raise --memory or resources.memory")

/* Signals by number, from 1 on. */
#define SIGNAL_NAMES "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL", "SIGUSR1", "SIGSEGV", "SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM", "SIGSTKFLT", "SIGCHLD", "SIGCONT", "SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGXCPU", "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGWINCH", "SIGIO", "SIGPWR", "SIGSYS"
/* No message names these. */
#define QUIET_SIGNALS SIGPIPE, SIGINT, SIGTERM, SIGHUP
/* Results of the attempts to reach a host. */
enum net_verdict {
  NET_ALLOWED = 1,
  NET_NOT_LISTED = 2, /* no rule allows it */
  NET_DENIED = 3, /* a deny rule */
  NET_NOT_PUBLIC = 4, /* the name leads to an address that has to be listed itself, which stands in the place of the rule */
  NET_UNREACHABLE = 5, /* allowed, and no address of the host took the connection; the same connections are in its row allowed */
  NET_TOO_MANY = 6, /* allowed, and reset: more connections at once than the helper holds */
  NET_PUBLISHED = 7, /* an address and port of the host that lead to a server inside, whose port stands in the place of the rule */
  NET_UNRESOLVED = 8, /* allowed, and this host itself has found no address for the name */
  NET_GRANTED = 9, /* no connection: the owner has added the rule while the sandbox ran */
};

#define NET_VERDICT_TABLE(ROW) \
  ROW(NET_ALLOWED, "allowed") \
  ROW(NET_NOT_LISTED, "not-listed") \
  ROW(NET_DENIED, "denied") \
  ROW(NET_NOT_PUBLIC, "not-public") \
  ROW(NET_UNREACHABLE, "unreachable") \
  ROW(NET_TOO_MANY, "too-many") \
  ROW(NET_PUBLISHED, "published") \
  ROW(NET_UNRESOLVED, "unresolved") \
  ROW(NET_GRANTED, "granted")

/* Kinds of refusal. */
enum observation {
  OBSERVED_READ_ONLY = 1, /* to change a file, since its mount is read-only */
  OBSERVED_HIDDEN_READ = 2, /* to read a file or enter a directory that the host has and the sandbox has not */
  OBSERVED_HIDDEN_WRITE = 3, /* to write such a file */
  OBSERVED_HIDDEN_CREATE = 4, /* to make one in a directory that the host has and the sandbox has not */
  OBSERVED_HIDDEN_EXECUTE = 5,
  OBSERVED_HIDDEN_SOCKET = 6, /* to connect to one */
  OBSERVED_UNREACHABLE = 7, /* to connect to an address, in the place of the path ADDRESS:PORT, without network */
};

#define OBSERVATION_TABLE(ROW) \
  ROW(OBSERVED_READ_ONLY, "read-only") \
  ROW(OBSERVED_HIDDEN_READ, "hidden-read") \
  ROW(OBSERVED_HIDDEN_WRITE, "hidden-write") \
  ROW(OBSERVED_HIDDEN_CREATE, "hidden-create") \
  ROW(OBSERVED_HIDDEN_EXECUTE, "hidden-execute") \
  ROW(OBSERVED_HIDDEN_SOCKET, "hidden-socket") \
  ROW(OBSERVED_UNREACHABLE, "unreachable")

/* Keys of the status line. */
#define STATUS_REASON "reason"
#define STATUS_CODE "code"
#define STATUS_EXIT_CODE "exitCode"
#define STATUS_SIGNAL "signal"
#define STATUS_EXIT_STATUS "exitStatus"
#define STATUS_CANCELLED_BY "cancelledBy"
#define STATUS_ERRNO "errno"
#define STATUS_STEP "step"
#define STATUS_PATH "path"
#define STATUS_DETAIL "detail"
#define STATUS_BEGUN_NS "begunNs"
#define STATUS_STARTED_NS "startedNs"
#define STATUS_ENDED_NS "endedNs"
#define STATUS_CPU_US "cpuUs"
#define STATUS_PEAK_MEMORY "peakMemory"
#define STATUS_PEAK_PIDS "peakPids"
#define STATUS_READ_BYTES "readBytes"
#define STATUS_WRITE_BYTES "writeBytes"
#define STATUS_OOM_KILLS "oomKills"
#define STATUS_PIDS_REFUSED "pidsRefused"
#define STATUS_THROTTLED_US "throttledUs"
#define STATUS_KILLED "killed"
#define STATUS_ATTEMPTS "attempts"
#define STATUS_PROTECTED "protected"
#define STATUS_SET_IDS "setIds"
#define STATUS_SET_ID "setId"
#define STATUS_HIDDEN "hidden"
#define STATUS_HIDDEN_PATHS "hiddenPaths"
#define STATUS_CONFIG_LOCKED "configLocked"
#define STATUS_UNWATCHED "unwatched"
#define STATUS_NETWORK "network"
#define STATUS_NETWORK_OMITTED "networkOmitted"
#define STATUS_NETWORK_LOST "networkLost"
#define STATUS_FULL "full"
#define STATUS_OBSERVED "observed"
#define STATUS_OBSERVED_OMITTED "observedOmitted"
#define STATUS_OBSERVED_UNREAD "observedUnread"
#define STATUS_OBSERVER_LOST "observerLost"
#define STATUS_SAID "said"
#define STATUS_ZONES_GROWN "zonesGrown"
#define STATUS_LAYER "layer"

/* The first words of a key: who calls, then where. */
enum key_word {
  KEY_VERSION,
  KEY_ROOT,
  KEY_UID,
  KEY_GID,
  KEY_BOOT,
  KEY_CGROUP,
  KEY_CAPABILITIES,
  KEY_USER_NAMESPACE,
  KEY_MOUNT_NAMESPACE,
  KEY_DIRECTORY,
  KEY_TERMINAL,
  KEY_WORDS,
};

#define KEY_CALLER_WORDS 9
#define KEY_VARIABLES "PATH", "HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK", "ENABLE_DOCKER", "DOCKER_TIMEOUT", "DOCKER_MEMORY_LIMIT", "DOCKER_CPU_LIMIT", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "GIT_SSL_CAINFO", "CURL_CA_BUNDLE"
/* One of them is in every path of a toolchain. */
#define TOOLCHAIN_WORDS ".asdf", ".bun", ".cargo", ".conda", ".deno", ".dotnet", ".gem", ".ghcup", ".goenv", ".jdks", ".jenv", ".juliaup", ".linuxbrew", ".local", ".nimble", ".nodenv", ".npm-global", ".nvm", ".opam", ".pixi", ".pyenv", ".rbenv", ".rustup", ".rye", ".sdkman", ".volta", ".yarn", "anaconda", "anaconda3", "cargo", "fnm", "go", "mambaforge", "micromamba", "miniconda", "miniconda3", "miniforge3", "nix", "opt", "sdk"
/* Operators by which a shell starts another command. */
#define SHELL_WORDS "!", ".", ":", "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "eval", "exec", "source", "command", "builtin", "trap", "alias", "set", "time", "function", "coproc", "select"
/* Options of bash, before a script; none is one of our options. */
#define BASH_OPTIONS "--login", "--noprofile", "--norc", "--posix"
/* Options whose value is SRC[:TARGET]. */
#define PLACE_OPTIONS "--ro", "--rw", "--cow"
/* Our options whose value is the next word, unless it is in the same. */
#define OPTIONS_BEFORE_VALUE "--add-header", "--add-host", "--after-secrets", "--allow-host", "--allow-local", "--allow-request", "--apply", "--approval", "--audit", "--backend", "--cache", "--cgroup-parent", "--cow", "--cow-continue", "--cow-keep", "--cow-size", "--cow-upper", "--cpu-time", "--cpus", "--credential", "--deny-host", "--device", "--docker-reuse", "--engine", "--env", "--hide", "--home", "--image", "--in", "--memory", "--net", "--output", "--pids", "--pool", "--profile", "--protect", "--protect-not", "--proxy", "--publish", "--read-bps", "--read-iops", "--require", "--ro", "--run", "--runtime", "--rw", "--rw-size", "--seccomp", "--shm", "--socket", "--swap", "--timeout", "--tmp", "--tmpfs", "--toolchains", "--why", "--workdir", "--worker", "--workshop", "--write-bps", "--write-iops", "--zone"
/* Options without a value, or with one in the same word. */
#define OPTIONS_ALONE "--allow-later", "--allow-shell-syntax", "--argv", "--ask-hosts", "--best-effort", "--die-with-parent", "--explain", "--git-identity", "--gpu", "--json", "--keep-state", "--log", "--no-workspace", "--plan", "--repository", "--same-path", "--self-inside", "--ssh-agent", "--terminate-tls", "--tty"
