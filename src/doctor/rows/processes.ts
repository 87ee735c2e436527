/** Rows about processes, terminal, descriptors and environment. Pure. */
import { umaskIn } from '../../os/proc-status.ts'
import {
  first,
  type ObservedRun,
  type Row,
  shell,
  statusValue,
  unless,
  unlessRan,
  unlessResultIs,
} from '../contract-types.ts'

/** Of signals that a process ignores, blocks or catches; real-time ones are in the upper half. */
const SIGNAL_SETS = ['SigBlk', 'SigIgn', 'SigCgt']
const CAPABILITY_SETS = ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb']

/** The hidden word of the row about PID 1: in the caller's environment, in the policy's and in the command. */
export const SECRET = 'LLM_DO_SELF_TEST_SECRET'

/** Of the probe's `starve` and `meddle`. */
const STARVING_CALLS = 18
const MEDDLING_CALLS = 9

const isZero = (text: string): boolean => /^0+$/.test(text)

const unlessZero = ({ stdout }: ObservedRun, names: readonly string[]): readonly string[] =>
  names
    .filter((name) => !isZero(statusValue(stdout, name)))
    .map((name) => `${name} is ${statusValue(stdout, name) || 'unknown'}`)

/** TIOCSTI, TIOCLINUX, TIOCSETD of asm-generic/ioctls.h, also with upper bits that the kernel cuts. */
const TERMINAL_REQUESTS = ['0x5412', '0x541c', '0x5423', '0x100005412', '0xffffffff0000541c', '0x8000000000005423']

/** Of /proc/PID/stat, proc(5): `PID (NAME) STATE PARENT GROUP SESSION ...`; the session is named after its leader. */
function leadsSession(stat: string): boolean {
  const [, pid, session] = /^(\d+) \(.*\) \S+ \d+ \d+ (\d+) /s.exec(stat) ?? []
  return pid !== undefined && pid === session
}

export const PROCESS_ROWS: readonly Row[] = [
  {
    id: 'processes.own-pids',
    sentence: 'Processes of the host cannot be seen or signalled.',
    attempts: ({ pid }) => [
      { command: shell('kill -0 "$1" 2>/dev/null && echo reached; test -e /proc/$1/stat && echo seen', `${pid}`) },
    ],
    wrong: (observed) => [
      unless(first(observed).stdout === '', first(observed).stdout.trim()),
      unless(first(observed).reason === 'exit', 'no run'),
    ],
  },
  {
    id: 'processes.nothing-outlives',
    sentence: 'Nothing outlives the command: nested daemons in new sessions, ignoring signals, some stopped.',
    attempts: ({ probe }) => [{ command: [probe, 'daemons', '20'] }],
    wrong: (observed) => [
      unlessRan(first(observed)),
      unless(observed.hostState.processes.length === 0, `${observed.hostState.processes.length} processes are left`),
      unless(first(observed).durationMs < 10_000, 'a daemon that held stdout delayed the end'),
    ],
  },
  {
    id: 'processes.first-untouchable',
    sentence: 'PID 1 can be neither traced, read, opened, starved nor ended by the command.',
    attempts: ({ probe }) => [
      { command: shell('"$1" attack 1; echo end reached', probe) },
      { command: [probe, 'starve', '1'] },
      { command: [probe, 'meddle', '1'] },
      { command: [probe, 'settings', '1'] },
    ],
    wrong: (observed) => [
      ...unlessResultIs(first(observed), ['EPERM', 'EACCES', 'ESRCH', 'EBADF', 'reached'], 8),
      ...unlessResultIs(first(observed, 1), ['EPERM'], STARVING_CALLS),
      // EINVAL: it is not ending, so there is nothing to release. ENOSYS: an older kernel.
      ...unlessResultIs(first(observed, 2), ['EPERM', 'EACCES', 'ESRCH', 'EINVAL', 'ENOSYS'], MEDDLING_CALLS),
      ...unlessResultIs(
        { ...first(observed, 3), stdout: first(observed, 3).stdout.replace(/^end ok$/m, 'end EPERM') },
        ['EPERM'],
        1,
      ),
    ],
  },
  {
    id: 'processes.first-says-nothing',
    sentence: 'The command line and environment of PID 1 show nothing of the caller.',
    attempts: ({ base }) => [
      {
        command: shell('tr "\\0" "\\n" </proc/1/cmdline; tr "\\0" "\\n" </proc/1/environ; echo end', base),
        env: { [SECRET]: base },
        policy: { env: { set: { [SECRET]: base } } },
      },
    ],
    wrong: (observed, { base }) => [
      unlessRan(first(observed)),
      unless(first(observed).stdout.includes('end'), 'it did not run'),
      unless(!`${first(observed).stdout}`.includes(base), 'a secret is visible'),
    ],
  },
  {
    id: 'processes.environment',
    sentence: 'Only the variables that the policy names reach the command.',
    attempts: ({ base }) => [{ command: ['/usr/bin/env'], env: { [SECRET]: base } }],
    wrong: (observed, { base }) => [
      unlessRan(first(observed)),
      unless(!first(observed).stdout.includes(`${SECRET}=${base}`), 'a variable arrived'),
    ],
  },
  {
    id: 'processes.descriptors',
    sentence: 'The command has descriptors 0, 1 and 2 and no other.',
    attempts: ({ probe }) => [{ command: [probe, 'descriptors'] }],
    wrong: (observed) => [
      unless(
        first(observed).stdout === '0\n1\n2\n',
        `descriptors ${first(observed).stdout.trim().split('\n').join(' ')}`,
      ),
    ],
  },
  {
    id: 'processes.clean-start',
    sentence:
      "No signal is ignored or blocked, the mask of file modes is the caller's, core dumps are off for pipe handlers too.",
    attempts: () => [{ command: shell('cat /proc/self/status /proc/self/limits') }],
    wrong: (observed, { umask }) => [
      ...unlessZero(first(observed), SIGNAL_SETS),
      unless(/^Max core file size +1 +1 /m.test(first(observed).stdout), 'the bound of core dumps is not 1'),
      unless(umaskIn(first(observed).stdout) === umask, `the mask is not ${umask.toString(8)}`),
    ],
  },
  {
    id: 'processes.terminal',
    sentence:
      "The caller's terminal is out of reach: a new session, no /dev/tty, and no request that types into a terminal.",
    attempts: ({ probe }) => [
      { command: [probe, 'ioctl', ...TERMINAL_REQUESTS] },
      { command: [probe, 'write-open', '/dev/tty'] },
      { command: ['/bin/cat', '/proc/self/stat'] },
    ],
    wrong: (observed) => [
      ...unlessResultIs(first(observed), ['EPERM'], TERMINAL_REQUESTS.length),
      ...unlessResultIs(first(observed, 1), ['ENXIO', 'ENOENT'], 1),
      unless(leadsSession(first(observed, 2).stdout), 'the command is in the session of another process'),
    ],
  },
  {
    id: 'processes.no-privileges',
    sentence: 'All five capability sets are empty, no_new_privs is set, a seccomp filter is on.',
    attempts: () => [{ command: ['/bin/cat', '/proc/self/status'] }],
    wrong: (observed) => [
      ...unlessZero(first(observed), CAPABILITY_SETS),
      unless(statusValue(first(observed).stdout, 'NoNewPrivs') === '1', 'no_new_privs is not set'),
      unless(statusValue(first(observed).stdout, 'Seccomp') === '2', 'no seccomp filter'),
    ],
  },
  {
    id: 'processes.never-root',
    sentence: "The command's id is root's neither inside nor on the host.",
    attempts: () => [{ command: shell('id -u; cat /proc/self/uid_map') }],
    wrong: (observed) => {
      const [inside = '0', ...maps] = first(observed).stdout.trim().split('\n')
      return [
        unlessRan(first(observed)),
        unless(inside !== '0', 'uid 0 inside'),
        unless(maps.length > 0, 'no id map'),
        ...maps.filter((map) => /^\s*\d+\s+0\s/.test(map)).map((map) => `mapped to root: ${map.trim()}`),
      ]
    },
  },
  {
    id: 'processes.debugger',
    sentence: 'A debugger can still trace its own children.',
    attempts: ({ probe }) => [{ command: [probe, 'trace-child'] }],
    wrong: (observed) => unlessResultIs(first(observed), ['ok'], 1),
  },
]
