/**
 * make soak: sandboxes with policies, attacks and kills that a seed chooses, several at once, for as long as asked; and a
 * look at the host after each. Run by scripts/soak.mjs.
 *
 *   soak --minutes 30 [--seed N] [--round N] [--jobs N]
 *
 * Every choice of round N follows from the seed and N alone (`--round N` runs that one again); when a kill meets its victim does not.
 * The first round that harms anything ends the soak: it is printed with its choices and what was harmed, and the exit status is 1.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { descendantsOf } from '../support/processes.ts'
import { becoming, canBePlain, checkoutFor, currentUser, PLAIN_ID, type User } from '../support/users.ts'
import { type Cell, FILTERS, type Filter } from './attack.ts'
import { prepareRepositories, repositoriesOf } from './git.ts'
import { ATTACKS } from './table.ts'
import {
  BEGUN,
  endProcessesWith,
  environmentOf,
  harmTo,
  hostState,
  makeWorld,
  optionsOf,
  put,
  type Ran,
  runProgram,
  signal,
  textOf,
  type World,
} from './world.ts'

/* ---- chance ---- */

type Chance = () => number

/** Numbers from 0 to 1 that are the same for the same seed (mulberry32). */
function chanceOf(seed: number): Chance {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    const mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    const more = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((more ^ (more >>> 14)) >>> 0) / 2 ** 32
  }
}

const pick = <T>(chance: Chance, all: readonly T[]): T => all[Math.floor(chance() * all.length)] as T
const happens = (chance: Chance, share: number): boolean => chance() < share

/* ---- what a round does ---- */

interface Round {
  readonly number: number
  readonly cell: Cell
  /** Ids of attacks and names of loads, in order. */
  readonly steps: readonly string[]
  readonly options: readonly string[]
  readonly mode: 'ro' | 'rw'
  /** A ready sandbox is offered for it. */
  readonly isWarm: boolean
  readonly kill?: { readonly afterMs: number; readonly signal: 'SIGTERM' | 'SIGKILL'; readonly victim: number }
}

/** Most rounds are what people use; `nested` refuses most writable zones. */
const FILTER_SHARES: readonly Filter[] = [
  ...Array<Filter>(4).fill('default'),
  'strict',
  'off',
  'off',
  'file',
  ...FILTERS,
]

const OPTIONS: readonly (readonly string[])[] = [
  ['--tmpfs', '/scratch:1m'],
  ['--memory', '64m'],
  ['--memory', 'none'],
  ['--pids', '40'],
  ['--pids', 'none'],
  ['--cpus', '1'],
  ['--json'],
  ['--output', '10k'],
  ['--timeout', '300ms'],
  ['--timeout', '2s'],
  ['--net', 'host'],
  ['--workdir', '/tmp'],
  ['--ro', '/usr/share:/usr/share'],
  ['--pool', 'off'],
]

/** Commands that load a machine without attacking it; each ends within seconds. */
const LOADS: Readonly<Record<string, (world: World) => string>> = {
  'load.forks': () => 'i=0; while [ $i -lt 60 ]; do sleep 1 & i=$((i + 1)); done 2>/dev/null',
  'load.memory': () => 'head -c 100000000 /dev/zero | tail >/dev/null',
  'load.output': () => 'head -c 3000000 /dev/zero | tr "\\0" x',
  'load.files': ({ zone }) =>
    `mkdir -p ${zone}/many; i=0; while [ $i -lt 200 ]; do : >${zone}/many/$i; i=$((i + 1)); done; rm -rf ${zone}/many`,
  'load.wait': () => 'sleep 0.3',
  'load.stop': () => 'kill -STOP $$',
  'load.linger': ({ tools, base }) => `${tools}/linger ${base} 100`,
  'load.git': ({ zone }) =>
    `cd ${zone}; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; git status --short >/dev/null`,
}

const isStep = ({ script }: (typeof ATTACKS)[number]): boolean => script !== undefined

function roundOf(seed: number, number: number, users: readonly User[]): Round {
  const chance = chanceOf(Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(number + 1, 0xc2b2ae35))
  const cell: Cell = {
    user: pick(chance, users),
    backend: pick(chance, ['unshare', 'unshare', 'bwrap']),
    filter: pick(chance, FILTER_SHARES),
  }
  const possible = ATTACKS.filter((attack) => isStep(attack) && (attack.on?.(cell) ?? true)).map(({ id }) => id)
  const steps = Array.from({ length: 1 + Math.floor(chance() * 6) }, () =>
    happens(chance, 0.3) ? pick(chance, Object.keys(LOADS)) : pick(chance, possible),
  )
  const options = Array.from({ length: Math.floor(chance() * 4) }, () => pick(chance, OPTIONS)).flat()
  const kill = {
    afterMs: Math.floor(chance() ** 2 * 1_500),
    signal: pick(chance, ['SIGTERM', 'SIGKILL'] as const),
    victim: chance(),
  }
  const round = { number, cell, steps, options, mode: happens(chance, 0.2) ? ('ro' as const) : ('rw' as const) }
  const isWarm = happens(chance, 0.2)
  return { ...round, isWarm, ...(happens(chance, 0.5) ? { kill } : {}) }
}

/* ---- one round ---- */

interface RoundOutcome {
  readonly harms: readonly string[]
  readonly outcome: 'ran' | 'killed' | 'refused'
}

async function playRound(round: Round): Promise<RoundOutcome> {
  const world = makeWorld({ user: round.cell.user })
  try {
    prepareRepositories(world)
    put(world, join(world.base, 'count/lines'), '')
    put(world, join(world.runtime, 'tmp/.keep'), '')
    const keeper = round.isWarm ? await startPool(round, world) : undefined
    const before = hostState(world)
    const protectedBefore = protectedIn(world)
    const ran = await runAndKill(round, world, keeper)
    if (keeper !== undefined) await stopKeeper(keeper)
    await useOnHost(world)
    await callHost(world, ['prune'])
    const harms = [
      ...(await harmTo(world, before, [ran])),
      ...differing(protectedBefore, protectedIn(world)),
      ...readdirSync(world.marks).map((name) => `the host ran the program of ${name}`),
      ...twice(world),
      ...leftovers(world),
    ]
    return { harms, outcome: outcomeOf(ran, round) }
  } finally {
    endProcessesWith(world.base)
    await callHost(world, ['prune']) // the processes just killed have records, which go with the world
    world.remove()
  }
}

const outcomeOf = ({ status, stdout, stderr, signal }: Ran, { kill }: Round): RoundOutcome['outcome'] => {
  if (kill !== undefined && (signal !== null || /killed|ended by|SIGTERM|SIGKILL|lost/.test(stderr))) return 'killed'
  return status === 125 && !stdout.includes(BEGUN) ? 'refused' : 'ran'
}

function wordsOf(
  { cell, options, mode, steps }: Round,
  world: World,
): { readonly policy: readonly string[]; readonly script: string } {
  const { zone, shown, tools, base } = world
  const zones = [`zone=${zone}:${zone}:${mode}`, `shown=${shown}:${shown}:ro`, `tools=${tools}:${tools}:ro`]
    .concat(`count=${base}/count:${base}/count:rw`)
    .flatMap((one) => ['--zone', one])
  const limit = options.includes('--timeout') ? [] : ['--timeout', '8s']
  const policy = [
    ...optionsOf(world, cell),
    ...zones,
    ...limit,
    '--best-effort',
    '--env',
    `MARK=${world.base}`,
    ...options,
  ]
  const parts = steps.map((id) => `(\n${scriptOf(id, world)}\n) 2>&1`)
  return { policy, script: [`echo x >>${world.base}/count/lines`, `echo ${BEGUN}`, ...parts].join('\n') }
}

function scriptOf(id: string, world: World): string {
  const load = LOADS[id]
  if (load !== undefined) return load(world)
  return ATTACKS.find((attack) => attack.id === id)?.script?.(world) ?? ''
}

const environmentIn = (world: World): Record<string, string> => ({
  ...environmentOf(world),
  TMPDIR: join(world.runtime, 'tmp'),
})

const programFor = ({ user }: World, name: string): string => join(checkoutFor(user), 'bin', name)

const callHost = (world: World, words: readonly string[]): Promise<Ran> =>
  runProgram([...becoming(world.user), programFor(world, 'llm-do'), ...words], {
    cwd: world.cwd,
    env: environmentIn(world),
  })

/** A keeper for the very plan of the round, and a first run that leaves the plan in the cache. */
async function startPool(round: Round, world: World): Promise<number | undefined> {
  const { policy } = wordsOf(round, world)
  const { status } = await callHost(world, ['pool', 'start', '--size', '1', ...policy])
  if (status !== 0) return undefined
  const { stdout } = await callHost(world, ['pool', 'status', '--json'])
  const keepers = JSON.parse(stdout || '[]') as readonly { readonly pid: number; readonly directory: string }[]
  return keepers.find(({ directory }) => directory === world.cwd)?.pid
}

async function stopKeeper(pid: number): Promise<void> {
  signal(pid, 'SIGTERM')
  for (let left = 5_000; left > 0 && isAlive(pid); left -= 20) await sleep(20)
  signal(pid, 'SIGKILL')
}

const isAlive = (pid: number): boolean =>
  existsSync(`/proc/${pid}`) && !/\) [ZX] /.test(textOf(`/proc/${pid}/stat`) ?? ') Z ')

/** Longer than any deadline of a round. */
const HANG_MS = 30_000

async function runAndKill(round: Round, world: World, keeper: number | undefined): Promise<Ran> {
  const { policy, script } = wordsOf(round, world)
  const words = [...becoming(world.user), programFor(world, 'llm-do-exec'), ...policy, '--', '/bin/sh', '-c', script]
  const runner = { pid: 0 }
  const ended = runProgram(words, {
    ...{ cwd: world.cwd, env: environmentIn(world), limitMs: HANG_MS },
    onStart: (pid) => (runner.pid = pid),
  })
  const { kill } = round
  if (kill !== undefined) {
    await Promise.race([sleep(kill.afterMs, undefined, { ref: false }), ended])
    const victims = [runner.pid, ...(keeper === undefined ? [] : [keeper])].flatMap((pid) => [
      pid,
      ...descendantsOf(pid),
    ])
    signal(victims[Math.floor(kill.victim * victims.length)] ?? 0, kill.signal)
  }
  return ended
}

/* ---- what the host sees afterwards ---- */

/** People go on working: git in every repository of the zone. */
async function useOnHost(world: World): Promise<void> {
  const env = environmentIn(world)
  for (const cwd of repositoriesOf(world).filter((path) => existsSync(path))) {
    await runProgram([...becoming(world.user), 'git', 'status', '--short'], { cwd, env })
    const identity = ['-c', 'user.name=a', '-c', 'user.email=a@b']
    const commit = ['commit', '-q', '--allow-empty', '-m', 'x']
    await runProgram([...becoming(world.user), 'git', ...identity, ...commit], { cwd, env })
  }
}

/** Names of the zone that must be as they were, there or not. */
const PROTECTED = '.git/config .git/hooks .vscode .idea .claude .mcp.json .envrc .bashrc .profile'.split(' ')

const protectedIn = ({ zone }: World): ReadonlyMap<string, string> =>
  new Map(PROTECTED.map((name) => [name, contentOf(join(zone, name))]))

function contentOf(path: string): string {
  if (!existsSync(path)) return 'absent'
  return textOf(path) ?? readdirSync(path).sort().join(' ')
}

const differing = (before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): readonly string[] =>
  [...before].filter(([name, text]) => after.get(name) !== text).map(([name]) => `protected ${name} changed`)

/** A command runs once, or not at all. */
function twice({ base }: World): readonly string[] {
  const lines = (textOf(join(base, 'count/lines')) ?? '').split('\n').length - 1
  return lines > 1 ? [`the command ran ${lines} times`] : []
}

/** Records of runs, mounts and temporary files that name the world. */
function leftovers(world: World): readonly string[] {
  const runs = world.user === 'root' ? '/run/llm-do/runs' : join(world.runtime, 'llm-do/runs')
  const records = existsSync(runs) ? readdirSync(runs) : []
  const ours = records.filter((name) => (textOf(join(runs, name)) ?? '').includes(world.base))
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((line) => line.includes(world.base))
  const temporary = readdirSync(join(world.runtime, 'tmp')).filter((name) => name !== '.keep')
  return [
    ...ours.map((name) => `record ${name} stayed`),
    ...mounts.map((line) => `mount stayed: ${line}`),
    ...temporary.map((name) => `temporary file ${name} stayed`),
  ]
}

/** Groups of our runs in the second cgroup tree. */
function ownGroups(): readonly string[] {
  const root = /^\S+ \S+ \S+ \S+ (\S+) .* - cgroup2 /m.exec(readFileSync('/proc/self/mountinfo', 'utf8'))?.[1]
  if (root === undefined) return []
  const found = execFileSync('find', [root, '-maxdepth', '4', '-type', 'd', '-name', 'llm-do-*'], { encoding: 'utf8' })
  return found.split('\n').filter(Boolean)
}

/** Groups that are empty and stay: those of runs that pass by go. */
async function groupsLeft(before: readonly string[]): Promise<readonly string[]> {
  const isLeft = (path: string): boolean => !before.includes(path) && textOf(join(path, 'cgroup.procs')) === ''
  let left = ownGroups().filter(isLeft)
  for (let wait = 10_000; wait > 0 && left.length > 0; wait -= 500) {
    await sleep(500)
    const now = ownGroups().filter(isLeft)
    left = left.filter((path) => now.includes(path))
  }
  return left
}

/* ---- all rounds ---- */

interface SoakOptions {
  readonly seed: number
  readonly minutes: number
  readonly jobs: number
  readonly round?: number
}

const print = (text: string): void => void process.stdout.write(`soak: ${text}\n`)

async function soak({ seed, minutes, jobs, round: only }: SoakOptions): Promise<boolean> {
  const users: readonly User[] = currentUser() === 'root' && canBePlain() ? ['root', 'plain'] : [currentUser()]
  print(
    `seed ${seed}, ${only === undefined ? `${minutes} minutes, ${jobs} at once` : `round ${only}`}, as ${users.join(' and ')}${users.length > 1 ? ` (${PLAIN_ID})` : ''}`,
  )
  const groups = ownGroups()
  const counts = { ran: 0, killed: 0, refused: 0 }
  const state: { next: number; harmed?: string } = { next: only ?? 0 }
  const end = performance.now() + minutes * 60_000
  const isOver = (): boolean =>
    state.harmed !== undefined || (only === undefined ? performance.now() > end : state.next > only)
  const work = async (): Promise<void> => {
    while (!isOver()) {
      const round = roundOf(seed, state.next++, users)
      const { harms, outcome } = await playRound(round)
      counts[outcome] += 1
      if (harms.length > 0)
        state.harmed ??= `round ${round.number}: ${harms.join('; ')}\n${JSON.stringify(round, null, 1)}`
    }
  }
  const progress = setInterval(() => print(`${state.next} rounds: ${JSON.stringify(counts)}`), 60_000)
  try {
    await Promise.all(Array.from({ length: only === undefined ? jobs : 1 }, work))
    const left = await groupsLeft(groups)
    if (left.length > 0) state.harmed ??= `cgroups stayed: ${left.join(' ')}`
  } finally {
    clearInterval(progress)
  }
  print(
    `${counts.ran + counts.killed + counts.refused} rounds: ${counts.ran} ran, ${counts.killed} killed, ${counts.refused} refused`,
  )
  if (state.harmed === undefined) print(`nothing was harmed (seed ${seed})`)
  else
    print(
      `HARMED, seed ${seed}, ${state.harmed}\nsoak: again: make soak SEED=${seed} ROUND=${/^round (\d+)/.exec(state.harmed)?.[1] ?? ''}`,
    )
  return state.harmed === undefined
}

function soakOptions(words: readonly string[]): SoakOptions {
  const value = (name: string): number | undefined => {
    const at = words.indexOf(name)
    const text = at < 0 ? '' : (words[at + 1] ?? '')
    if (text === '') return undefined
    if (!/^\d+(\.\d+)?$/.test(text)) throw new Error(`${name}: expected a number, got "${text}"`)
    return Number(text)
  }
  const round = value('--round')
  const seed = value('--seed') ?? Math.floor(Math.random() * 2 ** 31)
  return {
    seed,
    minutes: value('--minutes') ?? 10,
    jobs: value('--jobs') ?? 4,
    ...(round === undefined ? {} : { round }),
  }
}

mkdirSync(join(import.meta.dirname, '../../build'), { recursive: true })
process.exitCode = (await soak(soakOptions(process.argv.slice(2)))) ? 0 : 1
