// Where the milliseconds of a cold run go, or with --warm those of a warm one: the kernel's own events (perf record, tracepoints), cut at
// the marks below. A warm sandbox is not a child of the caller, so then the whole machine is recorded, which should be doing nothing else.
//   node bench/steps.mjs [--warm] [RUNS] [COMMAND...]
// Tracing costs about a microsecond an event, so the sum is a little more than an untraced run; the shares are what counts.
// Needs perf and the right to read tracepoints (root, or kernel.perf_event_paranoid=-1 and a readable tracefs).
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { withPool } from './pool.mjs'
import { makeStage } from './stage.mjs'
import { median, table } from './statistics.mjs'

/**
 * Each mark is the first such event after the mark before it: whose (comm), which, what the time up to it was spent on. HOST is what
 * runs outside of the sandbox, in one program or in two. A mark that a run has not is left out, and its time is the next one's.
 */
const BEGIN = [
  ['HOST', 'sched_process_exec', undefined],
  ['llm-do-exec', 'sys_enter_clone', 'client: key, cache file, every input checked'],
  ['launch', 'sched_process_exec', 'client: spawn of launch'],
  ['HOST', 'sys_enter_clone3', 'launch: record, cgroup, launch file'],
  ['HOST', 'sys_enter_unshare', 'launch: clone of the stager into the cgroup'],
]
const ENGINES = {
  unshare: [
    ['HOST', 'sys_enter_clone3', 'stager: mount namespace, zones opened'],
    ['HOST', 'sys_enter_unshare', "stager: id map, clone of init's process"],
    ['HOST', 'sys_enter_exit_group', "stager: the tree; at the same time init's process: namespaces, /proc"],
    ['HOST', 'sys_enter_execveat', "init's process: the tree, pivot"],
  ],
  bwrap: [
    ['HOST', 'sys_enter_setresuid', 'stager: id maps and the tree'],
    ['bwrap', 'sched_process_exec', 'stager: exec of the engine'],
    ['bwrap', 'sys_enter_clone', 'engine: dynamic linking, options'],
    ['bwrap', 'sys_enter_mount', 'engine: namespaces'],
    ['bwrap', 'sys_enter_execve', 'engine: its mounts, pivot'],
  ],
}
const END = [
  ['.init', 'sched_process_exec', 'init: exec'],
  ['.init', 'sys_enter_fork', 'init: launch file, Landlock, capabilities'],
  ['COMMAND', 'sched_process_exec', 'init: fork, limits, seccomp, exec of the command'],
  ['COMMAND', 'sched_process_exit', 'the command itself'],
  ['.init', 'sched_process_exit', 'init: reap, report'],
  ['bwrap', 'sys_enter_exit_group', 'kernel: end of the namespaces'],
  ['HOST', 'sys_enter_exit_group', 'end of the namespaces and of the engine; launch: cgroup and record away'],
  ['llm-do-exec', 'sched_process_exit', 'exit of launch, client'],
]
const HOST = new Set(['llm-do-exec', 'launch'])

/** Each step begins with a wake-up, but for the first and the command's own. */
const WARM = [
  ['llm-do-exec', 'sched_process_exec', undefined],
  ['llm-do-exec', 'sys_enter_sendmsg', 'client: start, key, cache file, plan compared, a socket claimed'],
  ['launch', 'sys_enter_sendmsg', 'launch: awake, message read and checked, command handed over'],
  ['.init', 'sys_enter_execve', "the command's process: awake, streams; at the same time launch: looks"],
  ['COMMAND', 'sched_process_exec', 'kernel: execve'],
  ['COMMAND', 'sched_process_exit', 'the command itself'],
  ['.init', 'sys_enter_sendmsg', 'init: awake, reaps, tells'],
  ['launch', 'sys_enter_sendto', 'launch: awake, outcome, tells'],
  ['llm-do-exec', 'sched_process_exit', 'client: awake, ends'],
]

const SYSCALLS = [
  ...['clone', 'clone3', 'unshare', 'setresuid', 'mount', 'execve', 'execveat', 'fork', 'exit_group'],
  ...['sendmsg', 'sendto'],
]
const EVENTS = [
  'sched:sched_process_exec',
  'sched:sched_process_exit',
  ...SYSCALLS.map((name) => `syscalls:sys_enter_${name}`),
]

function record(stage, words, scope) {
  const file = join(stage.directory, 'perf.data')
  // Without -N perf keeps what ran in ~/.debug, by another name of the same file where it can: a program with two names is a reason to
  // refuse some runs (src/plan/detach.ts).
  const recorded = spawnSync(
    'perf',
    ['record', '-q', '-N', ...scope, '-o', file, ...EVENTS.flatMap((event) => ['-e', event]), '--', ...words],
    {
      cwd: stage.cwd,
      env: stage.env,
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  )
  if (recorded.error || recorded.status !== 0)
    throw new Error(`perf record: ${recorded.error?.message ?? recorded.stderr.toString().trim()}`)
  const script = spawnSync('perf', ['script', '-i', file, '--ns', '-F', 'comm,tid,time,event'], { maxBuffer: 1 << 26 })
  return script.stdout
    .toString()
    .split('\n')
    .map((line) => /^\s*(\S+)\s+(\d+)\s+(\d+)\.(\d+):\s+\w+:(\w+):/.exec(line))
    .filter((match) => match !== null)
    .map(([, comm, , seconds, rest, event]) => ({
      comm,
      event,
      ns: Number(BigInt(seconds) * 1000000000n + BigInt(rest)),
    }))
}

const isWho = (who, comm, names) => (who === 'HOST' ? HOST.has(comm) : comm === (names[who] ?? who))

/** @returns one time a mark that was found, or undefined for a run that took another way (the client handed it to node) */
function times(events, { marks, names, least, isPlanned }) {
  const found = []
  let from = 0
  for (const [who, event, what] of marks) {
    const at = events.findIndex((seen, index) => index >= from && seen.event === event && isWho(who, seen.comm, names))
    if (at === -1) continue
    found.push({ what, ns: events[at].ns })
    from = at + 1
  }
  return isPlanned(events) || found.length < least ? undefined : found
}

/** Runs with the same marks, those that there are most of. */
function alike(runs) {
  return [...groupBy(runs).values()].sort((a, b) => b.length - a.length)[0] ?? []
}

const keyOf = (run) => run.map(({ what }) => what).join()

function groupBy(runs) {
  const groups = new Map()
  for (const run of runs) groups.set(keyOf(run), [...(groups.get(keyOf(run)) ?? []), run])
  return groups
}

function engineOf(stage) {
  const directory = join(stage.env.XDG_CACHE_HOME, 'llm-do/launch')
  const [name] = existsSync(directory) ? readdirSync(directory) : []
  const words = name === undefined ? [] : readFileSync(join(directory, name), 'latin1').split('\0')
  return words[words.indexOf('engine') + 1]
}

/** A run of the cold path is one that node had no part in. */
const cold = (engine) => ({
  marks: [...BEGIN, ...(ENGINES[engine] ?? []), ...END],
  least: BEGIN.length + END.length,
  isPlanned: (events) => events.some(({ comm }) => comm === 'node'),
  scope: [],
})

/** The keeper is node, and builds when it likes; a run that found nothing ready lacks most of the marks. */
const warm = { marks: WARM, least: WARM.length, isPlanned: () => false, scope: ['-a'] }

async function recordAll(stage, { words, plan, runs, before }) {
  const recorded = []
  for (let run = 0; run < runs; run += 1) {
    await before()
    recorded.push(times(record(stage, words, plan.scope), plan))
  }
  const seen = alike(recorded.filter((found) => found !== undefined))
  if (seen.length === 0)
    throw new Error('no run took that path: is the namespace backend usable here, and nothing else running?')
  return seen
}

function print(seen, title, runs) {
  const steps = seen[0].slice(1).map(({ what }, index) => ({
    what,
    ms: median(seen.map((found) => found[index + 1].ns - found[index].ns)) / 1e6,
  }))
  const sum = steps.reduce((total, { ms }) => total + ms, 0)
  const rows = steps.map(({ what, ms }) => [what, ms.toFixed(3), `${((100 * ms) / sum).toFixed(0)} %`])
  console.log(table([`step (${title})`, 'median ms', 'share'], [...rows, ['sum', sum.toFixed(3), '']]))
  console.log(`${seen.length} of ${runs} runs`)
}

const isWarm = process.argv[2] === '--warm'
const [runs = '40', ...command] = process.argv.slice(isWarm ? 3 : 2)
if (!(Number(runs) >= 1)) {
  console.error(
    `steps: expected a number of runs, got "${runs}"; usage: node bench/steps.mjs [--warm] [RUNS] [COMMAND...]`,
  )
  process.exit(2)
}
const names = { COMMAND: (command[0] ?? 'true').split('/').at(-1) }
const stage = makeStage()
try {
  const words = [stage.exec, '--', ...(command.length > 0 ? command : ['true'])]
  stage.warm(words)
  const engine = engineOf(stage)
  const recordPlan = (plan, before) => recordAll(stage, { words, plan: { ...plan, names }, runs: Number(runs), before })
  const seen = isWarm
    ? await withPool(stage, 1, (pool) => recordPlan(warm, pool.fill))
    : await recordPlan(cold(engine), () => undefined)
  print(seen, `engine: ${engine}${isWarm ? ', warm' : ''}`, runs)
} catch (error) {
  console.error(`steps: ${error.message}`)
  process.exitCode = 1
} finally {
  stage.remove()
}
