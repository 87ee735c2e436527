/** Rows about files and mounts. Pure. */
import { LANDLOCK_CLOSES_SOCKETS, LANDLOCK_RENAMES } from '../../contract.ts'
import {
  first,
  linesOf,
  NOTES,
  type ObservedRun,
  type Row,
  shell,
  statusValue,
  unless,
  unlessRan,
  unlessResultIs,
  withoutLandlock,
} from '../contract-types.ts'

/** notes, probe, broken, socket. */
const SHOWN_FILES = 4
/** Of the probe's `flags`. */
const READ_ONLY = ['ro', 'ro,nosuid', 'ro,nodev', 'ro,nosuid,nodev']
/** Written by hand a second time: a mask that is dropped from the backend must be missed here. */
const MASKED = [
  ...['acpi', 'asound', 'bootconfig', 'buddyinfo', 'cmdline', 'config.gz', 'consoles', 'diskstats'],
  ...['interrupts', 'iomem', 'ioports', 'kallsyms', 'kcore', 'key-users', 'keys', 'kmsg', 'kpagecgroup', 'kpagecount'],
  ...['kpageflags', 'latency_stats', 'mdstat', 'modules', 'mtrr', 'pagetypeinfo', 'partitions', 'pressure'],
  ...['sched_debug', 'schedstat', 'scsi', 'slabinfo', 'softirqs', 'swaps', 'timer_list', 'timer_stats', 'vmallocinfo'],
  ...['vmstat', 'zoneinfo'],
]
/** The same for the one file of /proc that is replaced: nothing where the null device covers it. */
const CGROUP_LIST = ['cpuset', 'cpu', 'cpuacct', 'memory', 'pids'].map((name) => `${name}\t0\t1\t1\n`).join('')
const CGROUP_TEXTS = ['', `#subsys_name\thierarchy\tnum_cgroups\tenabled\n${CGROUP_LIST}`]
const KNOBS = ['/proc/sys', '/proc/sysrq-trigger', '/proc/irq', '/proc/bus', '/proc/fs']

const WRITE_TO_SHOWN = [
  '"$2" remount "$1"; cat /proc/self/status',
  'echo evil >"$1/notes"; echo evil >"$1/new"; rm -f "$1/notes"; mv "$1/notes" "$1/gone"; ln "$1/notes" "$1/link"',
  'chmod 777 "$1/notes"; mkdir "$1/directory"',
].join('\n')

const REMOUNTS = ['mount', 'umount2']
const resultOf = (run: ObservedRun, call: string): string =>
  linesOf(run).find(({ what }) => what === call)?.result ?? 'no answer'

/** Everything that could get content to a protected path that exists, or the path out of the way. */
const ATTACK_PROTECTED = [
  'cd "$1" || exit 9',
  'echo evil >>.git/config; rm -f .git/config; mv .git/config moved; ln .git/config hard && echo evil >hard',
  'echo evil >.git/hooks/pre-commit; rmdir .git/hooks; mv .git/hooks hooks; mv .git gone; rm -rf .git/hooks .git/config',
  'mkdir new && mv -T new .git; ln -sfnT /tmp .git',
  'echo fine >allowed',
].join('\n')

/** Ways to make one that does not exist; each ends the run. */
const MAKE_PROTECTED = [
  'mkdir .vscode',
  'echo evil >.envrc',
  'mkdir fresh && mv -T fresh .idea',
  'ln -s /tmp .claude',
  'mkdir sub && mkdir sub/.git',
  'echo evil >.git/commondir',
]

const WATCHED = /^\.(git(\/|$)|vscode|idea|mcp\.json|claude|codex|agents|envrc)|^sub\//
const SET_ASIDE = '.set-aside.'

export const FILE_ROWS: readonly Row[] = [
  {
    id: 'files.host-absent',
    sentence:
      'What no zone shows does not exist inside: shadow, /sys, the sockets of docker and D-Bus, other directories.',
    attempts: ({ probe: program, hidden }) => [
      {
        command: [
          program,
          'stat',
          '/etc/shadow',
          '/sys/kernel',
          '/run/docker.sock',
          '/run/dbus',
          hidden,
          `${hidden}/secret`,
          // Above the root: the host's own, if it was not let go.
          '/../etc/shadow',
          '/../sys/kernel',
          `/..${hidden}`,
        ],
      },
    ],
    wrong: (observed) => unlessResultIs(first(observed), ['ENOENT'], 9),
  },
  {
    id: 'files.read-only-zone',
    sentence:
      'A read-only zone cannot be written, remounted or uncovered, and the command has no capability to try with.',
    attempts: ({ shown, probe: program }) => [{ command: shell(WRITE_TO_SHOWN, shown, program) }],
    wrong: (observed) => [
      unlessRan(first(observed)),
      ...REMOUNTS.map((call) =>
        unless(resultOf(first(observed), call) === 'EPERM', `${call}: ${resultOf(first(observed), call)}`),
      ),
      unless(/^0+$/.test(statusValue(first(observed).stdout, 'CapEff')), 'CapEff is not 0'),
      unless(observed.hostState.shown['notes']?.content === NOTES, 'a file of the zone changed'),
      unless(Object.keys(observed.hostState.shown).length === SHOWN_FILES, 'the zone has other files than before'),
    ],
  },
  {
    id: 'files.target-below-writable',
    sentence:
      'A zone that would be mounted below a writable one is refused: a planted link would lead the mount astray.',
    attempts: ({ shown, writable }) => [
      {
        command: ['/bin/true'],
        policy: { zones: [{ name: 'below', mode: 'ro', hostPath: shown, target: `${writable}/below` }] },
      },
    ],
    wrong: (observed) => [unless(first(observed).refused !== undefined, 'it was not refused')],
  },
  {
    id: 'files.proc-knobs',
    sentence: 'The knobs of the host below /proc are read-only: core_pattern as root would be the host.',
    attempts: ({ probe: program }) => [
      { command: [program, 'flags', ...KNOBS] },
      { command: [program, 'write-open', '/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger'] },
    ],
    wrong: (observed) => [
      ...unlessResultIs(first(observed), [...READ_ONLY, 'ENOENT'], KNOBS.length),
      ...unlessResultIs(first(observed, 1), ['EACCES', 'EROFS', 'EPERM', 'ENOENT'], 2),
    ],
  },
  {
    id: 'files.proc-masks',
    sentence:
      'Files below /proc that describe the kernel are covered by /dev/null, an empty directory or, for cgroups, our own file.',
    attempts: ({ probe: program }) => [
      { command: [program, 'kind', ...MASKED.map((name) => `/proc/${name}`)] },
      { command: shell('test ! -e /proc/cgroups || cat /proc/cgroups') },
    ],
    wrong: (observed) => [
      ...unlessResultIs(first(observed), ['null', 'empty', 'ENOENT'], MASKED.length),
      ...(CGROUP_TEXTS.includes(first(observed, 1).stdout) ? [] : ['/proc/cgroups: other']),
    ],
  },
  {
    id: 'files.root-read-only',
    sentence: 'The root, /dev, /etc and what holds the mount points are read-only.',
    attempts: ({ probe: program, base }) => [
      { command: [program, 'flags', '/', '/dev', '/etc', '/usr'] },
      { command: [program, 'create', '/new', '/dev/new', '/etc/new', '/usr/new', '/home/new', `${base}-new/x`] },
    ],
    wrong: (observed) => [
      ...unlessResultIs(first(observed), READ_ONLY, 4),
      ...unlessResultIs(first(observed, 1), ['EROFS', 'EACCES', 'EPERM', 'ENOENT'], 6),
    ],
  },
  {
    id: 'files.scratch-bounds',
    sentence: 'Every scratch file system ends at its bytes and at its number of files.',
    attempts: ({ probe: program }) => [
      {
        command: shell(
          'for at in /tmp /run /dev/shm "$HOME"; do "$1" fill $at/full 8000000; "$1" flood $at 5000; done',
          program,
        ),
        policy: { resources: { tmp: '2m', run: '2m', shm: '2m', home: '2m' } },
      },
    ],
    wrong: (observed) => unlessResultIs(first(observed), ['ENOSPC'], 8),
  },
  {
    id: 'files.no-devices-no-setuid',
    sentence: 'Every zone and every scratch file system is nosuid and nodev.',
    attempts: ({ probe: program, shown, writable }) => [
      { command: [program, 'flags', shown, writable, '/usr', '/tmp', '/run', '/dev/shm', '/home/sandbox'] },
    ],
    wrong: (observed) => unlessResultIs(first(observed), ['ro,nosuid,nodev', 'rw,nosuid,nodev'], 7),
  },
  {
    id: 'files.setuid-plant',
    sentence: 'No call leaves a program on the host that runs as root, by mode bits or by file capabilities.',
    attempts: ({ probe: program, writable }) => [{ command: [program, 'plant-setuid', writable] }],
    wrong: (observed) => [
      unlessRan(first(observed)),
      unless(linesOf(first(observed)).length >= 7, 'not every call was made'),
      ...linesOf(first(observed))
        .filter(({ what, result }) => what === 'capability' && result === 'ok')
        .map(() => 'a file capability was set'),
      ...Object.entries(observed.hostState.writable)
        .filter(([, { mode, uid }]) => (mode & 0o6000) !== 0 && uid === 0)
        .map(([path]) => `${path} is set-id and belongs to root`),
    ],
  },
  {
    id: 'files.owner',
    sentence: 'New files in a writable zone belong to the owner of the zone.',
    attempts: ({ writable }) => [{ command: shell('echo x >"$1/made"', writable) }],
    wrong: (observed, { uid }) => [
      unless(observed.hostState.writable['made'] !== undefined, 'no file was made'),
      unless(
        (observed.hostState.writable['made']?.uid ?? uid) === uid,
        `it belongs to ${observed.hostState.writable['made']?.uid}`,
      ),
    ],
  },
  {
    id: 'files.protected',
    sentence: 'Protected paths of a writable zone can be neither changed, moved, replaced nor made, existing or not.',
    attempts: ({ writable }) => [
      { command: shell(ATTACK_PROTECTED, writable) },
      ...MAKE_PROTECTED.map((script) => ({ command: shell(`cd "$1" && ${script}`, writable) })),
    ],
    wrong: ({ runs: [existing, ...made], hostState: { writable } }) => [
      ...(existing === undefined ? ['nothing ran'] : [unlessRan(existing)]),
      ...made.map(({ reason }, index) =>
        unless(reason === 'protected', `"${MAKE_PROTECTED[index]}" did not end the run`),
      ),
      unless(writable['allowed'] !== undefined, 'the rest of the zone could not be written'),
      unless(writable['.git/config']?.content === NOTES, '.git/config changed'),
      unless(writable['.git/hooks']?.content === 'directory', '.git/hooks is gone'),
      ...Object.keys(writable)
        .filter((path) => WATCHED.test(path) && !path.includes(SET_ASIDE))
        .filter((path) => !['.git', '.git/config', '.git/hooks'].includes(path))
        .map((path) => `${path} was made`),
    ],
  },
  {
    id: 'files.hidden',
    sentence: 'A hidden file cannot be read in a zone.',
    attempts: ({ shown }) => [
      {
        command: shell('cd "$1"; echo tried; cat notes /proc/self/cwd/notes; umount notes; cat <notes', shown),
        policy: { hide: ['notes'] },
      },
    ],
    wrong: (observed) => [
      unlessRan(first(observed)),
      unless(first(observed).stdout === 'tried\n', `it was read: ${first(observed).stdout.trim()}`),
    ],
  },
  {
    id: 'files.make-sockets',
    sentence: 'Sockets and FIFOs cannot be made in a zone, where they would be a way to processes of the host.',
    attempts: ({ probe: program, writable }) => [{ command: [program, 'make-in', writable] }],
    wrong: (observed, site) =>
      site.landlockAbi < LANDLOCK_RENAMES
        ? { kind: 'cannot', why: withoutLandlock(LANDLOCK_RENAMES, '5.19', site) }
        : unlessResultIs(first(observed), ['EACCES', 'EPERM'], 2),
  },
  {
    id: 'files.reach-sockets',
    sentence: 'UNIX sockets that lie in a zone cannot be reached, or a run that requires it is refused.',
    attempts: ({ probe: program, shown }) => [
      { command: [program, 'unix', `${shown}/socket`], policy: { require: ['sockets-closed'] } },
    ],
    wrong: (observed, site) => {
      const { refused } = first(observed)
      const why = `${withoutLandlock(LANDLOCK_CLOSES_SOCKETS, '7.1', site)}; --require sockets-closed is refused`
      if (refused !== undefined && site.landlockAbi < LANDLOCK_CLOSES_SOCKETS) return { kind: 'cannot', why }
      return [
        ...unlessResultIs(first(observed), ['EACCES', 'EPERM'], 1),
        unless(observed.hostState.connections === 0, 'the host was reached'),
      ]
    },
  },
]
