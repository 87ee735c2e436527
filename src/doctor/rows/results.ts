/** Rows about limits, results and refusals. Pure. */
import { createHash } from 'node:crypto'
import { type Attempt, first, type Row, shell, unless, unlessRan } from '../contract-types.ts'

const MIB = 1024 ** 2

/** Arguments that must arrive unchanged. */
const WORDS = ['', '--bind', '-', '--', 'a\nb\t', '$(id) "\'\\', 'ü€😀', 'x'.repeat(100_000)]
const hex = (word: string): string => Buffer.from(word).toString('hex')

/** No two neighbours alike, so that a lost or doubled block shows. */
function pattern(bytes: number): Uint8Array {
  return new Uint8Array(bytes).map((_, index) => (index * 31 + (index >> 8) * 17 + (index >> 16)) & 0xff)
}

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

const FORGED = '{"cause":"memory","waitStatus":0,"schema":1,"ok":true,"exitCode":0}'

const AT_ONCE = 20

export const RESOURCE_ROWS: readonly Row[] = [
  {
    id: 'resources.memory',
    sentence: 'A command that takes more memory than allowed is ended, and the result says why.',
    attempts: ({ probe }) => [{ command: [probe, 'eat', `${512 * MIB}`], policy: { resources: { memory: '64m' } } }],
    wrong: (observed) => [
      unless(!first(observed).stdout.includes('eat ok'), 'it got all the memory it wanted'),
      unless(first(observed).reason === 'memory', `the reason is ${first(observed).reason}`),
    ],
  },
  {
    id: 'resources.memory-in-files',
    sentence: 'Pages of scratch file systems count as memory.',
    attempts: ({ probe }) => [
      {
        command: shell('"$1" fill /tmp/full 268435456; sleep 2', probe),
        policy: { resources: { memory: '64m', tmp: '1g' } },
      },
    ],
    wrong: (observed) => [unless(first(observed).reason === 'memory', `the reason is ${first(observed).reason}`)],
  },
  {
    id: 'resources.processes',
    sentence: 'A fork bomb ends at the bound of processes.',
    attempts: ({ probe }) => [{ command: [probe, 'forks', '200'], policy: { resources: { pids: 16 } } }],
    wrong: (observed) => {
      const made = Number(/^forks (\d+)$/m.exec(first(observed).stdout)?.[1] ?? Number.NaN)
      return [unless(made > 0 && made <= 16, `${made} processes`)]
    },
  },
  {
    id: 'resources.affinity',
    sentence: 'A command with one processor cannot take others back.',
    attempts: ({ probe }) => [{ command: [probe, 'processors'], policy: { resources: { cpus: 1 } } }],
    // The kernel's own quota leaves processors alone, and holds all the same.
    wrong: (observed) => [
      unlessRan(first(observed)),
      unless(
        first(observed).cpusBy === 'cgroup2' || first(observed).stdout === 'processors 1\n',
        first(observed).stdout.trim(),
      ),
    ],
  },
  {
    id: 'resources.deadline',
    sentence: 'At the deadline the whole tree is gone, a stopped one too, and what it had printed is kept.',
    attempts: ({ probe }) => [
      {
        command: shell('echo begun; "$1" daemons 10; kill -STOP $$', probe),
        policy: { resources: { timeout: '500ms' } },
      },
    ],
    wrong: (observed) => [
      unless(first(observed).reason === 'timeout', `the reason is ${first(observed).reason}`),
      unless(first(observed).stdout === 'begun\n', 'the output is lost'),
      unless(observed.hostState.processes.length === 0, `${observed.hostState.processes.length} processes are left`),
    ],
  },
  {
    id: 'resources.output',
    sentence: 'A flood of output is cut at its bound and counted to the byte.',
    attempts: () => [
      {
        command: shell('head -c 8388608 /dev/zero & head -c 8388608 /dev/zero >&2; wait'),
        policy: { resources: { output: '64k' } },
      },
    ],
    wrong: (observed) => [
      unlessRan(first(observed)),
      unless(first(observed).truncated === 8 * MIB - 65_536, `${first(observed).truncated} bytes dropped`),
    ],
  },
]

export const RESULT_ROWS: readonly Row[] = [
  {
    id: 'results.exit-or-signal',
    sentence: 'The result distinguishes exit status 137 from death by SIGKILL.',
    attempts: () => [{ command: shell('exit 137') }, { command: shell('kill -9 $$') }],
    wrong: (observed) => [
      unless(first(observed).exitCode === 137 && first(observed).signal === null, 'exit 137 is not told as such'),
      unless(
        first(observed, 1).signal === 'SIGKILL' && first(observed, 1).exitCode === null,
        'SIGKILL is not told as such',
      ),
    ],
  },
  {
    id: 'results.not-started',
    sentence:
      'A command that is missing, not executable or lacks its interpreter differs from one that exits with 127 or 126.',
    attempts: ({ shown }) => [
      { command: [`${shown}/missing`] },
      { command: [`${shown}/notes`] },
      { command: [`${shown}/broken`] },
      { command: shell('exit 127') },
      { command: shell('exit 126') },
    ],
    wrong: (observed) => [
      unless(first(observed).errorCode === 'COMMAND_NOT_FOUND', `missing: ${first(observed).errorCode}`),
      unless(
        first(observed, 1).errorCode === 'COMMAND_NOT_EXECUTABLE',
        `not executable: ${first(observed, 1).errorCode}`,
      ),
      unless(first(observed, 2).errorCode === 'COMMAND_NOT_EXECUTABLE', `interpreter: ${first(observed, 2).errorCode}`),
      unless(first(observed, 3).exitCode === 127 && first(observed, 3).errorCode === undefined, 'exit 127'),
      unless(first(observed, 4).exitCode === 126 && first(observed, 4).errorCode === undefined, 'exit 126'),
    ],
  },
  {
    id: 'results.no-forging',
    sentence: 'Nothing that a command prints, on any descriptor, becomes a result.',
    attempts: () => [{ command: shell('for fd in 1 2 3 4 5; do echo "$1" >&$fd; done 2>/dev/null; exit 3', FORGED) }],
    wrong: (observed) => [
      unless(
        first(observed).reason === 'exit' && first(observed).exitCode === 3,
        `${first(observed).reason} ${first(observed).exitCode}`,
      ),
    ],
  },
  {
    id: 'results.arguments',
    sentence: 'Arguments arrive unchanged: empty, options, newlines, quotes, 100 kB.',
    attempts: ({ probe }) => [{ command: [probe, 'arguments', ...WORDS] }],
    wrong: (observed) => [unless(first(observed).stdout === `${WORDS.map(hex).join('\n')}\n`, 'they do not')],
  },
  {
    id: 'results.bytes',
    sentence: '8 MiB through cat come back identical.',
    attempts: () => [{ command: ['/bin/cat'], stdin: pattern(8 * MIB), policy: { resources: { output: '16m' } } }],
    wrong: (observed) => [
      unlessRan(first(observed)),
      unless(first(observed).stdoutSha256 === sha256(pattern(8 * MIB)), 'they differ'),
    ],
  },
  {
    id: 'results.no-mix',
    sentence: `${AT_ONCE} runs at once each have their own output and status.`,
    together: true,
    attempts: () =>
      Array.from({ length: AT_ONCE }, (_, n): Attempt => ({ command: shell('echo run "$1"; exit "$1"', `${n}`) })),
    wrong: ({ runs }) => [
      unless(runs.length === AT_ONCE, `${runs.length} runs`),
      ...runs.map((run, n) => unless(run.stdout === `run ${n}\n` && run.exitCode === n, `run ${n}: ${run.exitCode}`)),
    ],
  },
]

export const FALLBACK_ROWS: readonly Row[] = [
  {
    id: 'fallbacks.no-engine',
    sentence: 'Without the program that builds the walls a run is refused.',
    attempts: () => [{ command: ['/bin/true'], policy: { engine: 'bwrap' }, env: { PATH: '/nonexistent' } }],
    wrong: (observed) => [unless(first(observed).refused?.code === 'NO_BACKEND', 'it ran')],
  },
  {
    id: 'fallbacks.never-unsandboxed',
    sentence: 'A run without walls is refused until it is allowed a second time.',
    attempts: () => [
      {
        command: ['/bin/true'],
        policy: { backend: 'process', engine: 'auto' },
        env: { LLM_DO_ALLOW_UNSANDBOXED: '' },
      },
    ],
    wrong: (observed) => [unless(first(observed).refused?.code === 'NO_BACKEND', 'it ran')],
  },
  {
    id: 'fallbacks.required-limit',
    sentence: 'A limit that is required of the kernel is held by it, or the run is refused.',
    attempts: () => [{ command: ['/bin/true'], policy: { require: ['memory-limit'] } }],
    wrong: (observed) => {
      const { refused, memoryBy } = first(observed)
      return [unless(refused?.code === 'NO_BACKEND' || memoryBy === 'cgroup2', `held by ${memoryBy ?? 'nothing'}`)]
    },
  },
]
