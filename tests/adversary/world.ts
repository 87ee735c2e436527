/**
 * The place of an attack: a zone, what is shown, what is hidden, a home, and the host's look at all of it before and after.
 * Nothing here knows vitest: the soak uses it too.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { textHere } from '../real/in-process.ts'
import { guestDirectory } from '../support/driver.ts'
import { processesWith, readOr } from '../support/processes.ts'
import { becoming, checkoutFor, type User, uidOf } from '../support/users.ts'
import type { Cell } from './attack.ts'

export interface World {
  readonly user: User
  /** Owner of the zone and the home. */
  readonly uid: number
  /** Holds everything; its name occurs nowhere else on the machine. */
  readonly base: string
  /** rw zone, a git repository: `notes`, `Makefile`, `src/main.c`. */
  readonly zone: string
  /** ro zone: `notes`. */
  readonly shown: string
  /** ro zone: the guests of the tests, which all worlds share. */
  readonly tools: string
  /** No zone; holds `secret`. */
  readonly hidden: string
  /** HOME and XDG_RUNTIME_DIR of the caller. */
  readonly home: string
  readonly runtime: string
  /** Where it starts; empty. */
  readonly cwd: string
  /** Not visible inside: what runs on the host can leave a mark here. */
  readonly marks: string
  /** In `hidden/secret` alone. */
  readonly token: string
  readonly remove: () => void
}

export interface Ran {
  /** undefined when a signal ended it. */
  readonly status: number | undefined
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
  /** It was ended from outside since it did not end. */
  readonly hung: boolean
  readonly ms: number
}

/** Runs of an attack; the control has the same ones without the wall. */
export interface Stage {
  readonly world: World
  readonly cell: Cell
  readonly isControl: boolean
  /** Words that choose the cell. */
  readonly options: readonly string[]
  /** The built command. */
  readonly program: string
  /** The built command, in the control too: where the host's next run is what was attacked. */
  readonly cli: (words: readonly string[], more?: Inside) => Promise<Ran>
  /** A script in a sandbox with the two zones. */
  readonly inside: (script: string, more?: Inside) => Promise<Ran>
  /** The built command with words of the attack's own; the control runs `words` after `--` on the host. */
  readonly command: (words: readonly string[], more?: Inside) => Promise<Ran>
  /** A program on the host as the owner of the zone, without any sandbox: what people do after a run. */
  readonly host: (words: readonly string[], more?: Inside) => Promise<Ran>
  /** A program on the host in the background of the runs; it ends with the attack. */
  readonly inBackground: (words: readonly string[], more?: Inside & { readonly uid?: number }) => Promise<ChildProcess>
}

export interface Inside {
  /** More words for the command line. */
  readonly options?: readonly string[]
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  /** Not about protected names, which nested refuses to protect in a writable zone: tried without them there. */
  readonly opened?: boolean
  readonly limitMs?: number
}

/** Longer than any attack needs; who has not ended by then hangs. */
const LIMIT_MS = 25_000
const CONTENT_LIMIT = 1 << 20

export interface WorldInputs {
  readonly user: User
  /** Owner of zone and home, when that is another user than the caller. */
  readonly owner?: number
}

export function makeWorld({ user, owner }: WorldInputs): World {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'llm-do-test-adversary-')))
  const at = (name: string): string => join(base, name)
  const names = ['zone', 'shown', 'hidden', 'home', 'runtime', 'cwd', 'marks']
  for (const name of names) mkdirSync(at(name))
  chmodSync(base, 0o755)
  const token = `secret-${createHash('sha256').update(base).digest('hex')}`
  const uid = owner ?? uidOf(user)
  writeFileSync(at('hidden/secret'), `${token}\n`, { mode: 0o600 })
  writeFileSync(at('shown/notes'), 'host\n')
  writeFileSync(at('filter.yaml'), FILTER_FILE)
  makeRepository(at('zone'))
  for (const name of ['hidden', 'home', 'runtime']) chmodSync(at(name), 0o700)
  if (uid !== process.getuid?.()) execFileSync('chown', ['-R', `${uid}:${uid}`, base])
  return {
    ...{ user, uid, base, token, tools: guestDirectory(user) },
    ...{ zone: at('zone'), shown: at('shown'), hidden: at('hidden'), home: at('home'), runtime: at('runtime') },
    ...{ cwd: at('cwd'), marks: at('marks') },
    remove: () => removeTree(base),
  }
}

/** Its owner may have closed directories of it, or made them deeper than any path. */
function removeTree(base: string): void {
  try {
    rmSync(base, { recursive: true, force: true })
  } catch {
    execFileSync('chmod', ['-R', 'u+rwX', base])
    execFileSync('rm', ['-rf', base])
  }
}

/** Lets namespaces and mounts through, as a person might allow it for a program that builds sandboxes. */
const FILTER_FILE = 'extends: default\nallow: [unshare, clone, setns, mount, umount2, pivot_root]\n'

const GIT = { GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null', PATH: process.env.PATH }

/** A small repository with one commit; copied from the first that was made, since git takes ten milliseconds a word. */
function makeRepository(directory: string): void {
  writeFileSync(join(directory, 'notes'), 'host\n')
  writeFileSync(join(directory, 'Makefile'), 'all:\n')
  mkdirSync(join(directory, 'src'))
  writeFileSync(join(directory, 'src/main.c'), 'int main(void) { return 0; }\n')
  if (template.files.size === 0) {
    const git = (...words: readonly string[]) =>
      execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...words], { cwd: directory, env: GIT })
    git('init', '--quiet', '--template=')
    mkdirSync(join(directory, '.git/hooks'))
    git('add', '.')
    git('commit', '--quiet', '--message', 'first')
    remember(join(directory, '.git'), '')
    return
  }
  copyRepository(join(directory, '.git'))
}

/** The repository of every world once more, as this directory. */
export function copyRepository(git: string): void {
  mkdirSync(git, { recursive: true })
  for (const [path, content] of template.files) {
    if (content === undefined) mkdirSync(join(git, path), { recursive: true })
    else writeFileSync(join(git, path), content)
  }
}

const template = { files: new Map<string, Buffer | undefined>() }

function remember(git: string, below: string): void {
  template.files.set(below, undefined)
  for (const entry of readdirSync(join(git, below), { withFileTypes: true })) {
    const path = join(below, entry.name)
    if (entry.isDirectory()) remember(git, path)
    else template.files.set(path, readFileSync(join(git, path)))
  }
}

/* ---- runs ---- */

/** Words that choose a cell. */
export function optionsOf({ base }: World, { backend, filter }: Cell, image?: string): readonly string[] {
  const seccomp = ['--seccomp', filter === 'file' ? join(base, 'filter.yaml') : filter]
  return backend === 'docker' || backend === 'podman'
    ? ['--best-effort', '--backend', 'docker', '--image', image ?? '', ...seccomp]
    : ['--backend', 'namespace', '--engine', backend, ...seccomp]
}

const zonesOf = ({ zone, shown, tools }: World): readonly string[] => [
  ...['--zone', `zone=${zone}:${zone}:rw`, '--zone', `shown=${shown}:${shown}:ro`],
  ...['--zone', `tools=${tools}:${tools}:ro`],
]

export interface StageInputs {
  readonly world: World
  readonly cell: Cell
  readonly isControl?: boolean
  /** Runs are the library's in this process, where nothing stands around the runner: without the start of a node. */
  readonly isHere?: boolean
  /** Of the container backends. */
  readonly container?: { readonly image: string; readonly env: Readonly<Record<string, string>> }
}

export interface Trial extends Stage {
  readonly runs: readonly Ran[]
  /** Ends what runs in the background. */
  readonly end: () => void
}

export function stageFor({ world, cell, isControl = false, isHere = false, container }: StageInputs): Trial {
  const runs: Ran[] = []
  const children: ChildProcess[] = []
  const env = { ...environmentOf(world), ...container?.env }
  const start = async (words: readonly string[], more: Inside = {}): Promise<Ran> => {
    const ran = await runProgram([...becoming(world.user), ...words], {
      cwd: world.cwd,
      ...more,
      env: { ...env, ...more.env },
    })
    runs.push(ran)
    return ran
  }
  const startHere = async (words: readonly string[], { cwd = world.cwd, env: more }: Inside): Promise<Ran> => {
    const begun = performance.now()
    const { status, out, err } = await textHere(words, { cwd, env: { ...env, ...more } })
    const ran = { status, signal: null, stdout: out, stderr: err, hung: false, ms: performance.now() - begun }
    runs.push(ran)
    return ran
  }
  const options = optionsOf(world, cell, container?.image)
  const program = join(checkoutFor(world.user), 'bin/llm-do-exec')
  const cli: Stage['cli'] = (words, more = {}) =>
    isHere && canBeHere(words, more) ? startHere(words, more) : start([program, ...words], more)
  const command: Stage['command'] = (words, more) =>
    isControl ? start(words.slice(words.indexOf('--') + 1), more) : cli(words, more)
  return {
    ...{ world, cell, isControl, runs, command, cli },
    options,
    program,
    inside: (script, more = {}) => {
      const opened = more.opened && cell.filter === 'nested' ? ['--protect-not', '*'] : []
      const limits = ['--timeout', '20s', '--env', `MARK=${world.base}`]
      const words = [...options, ...zonesOf(world), ...limits, ...opened, ...(more.options ?? [])]
      return command([...words, '--', '/bin/sh', '-c', `echo ${BEGUN}\n${script}`], more)
    },
    host: async (words, more = {}) => {
      const cwd = more.cwd ?? world.cwd
      // A refused command has not made the directory that the host was to stand in.
      if (!existsSync(cwd)) return NOT_STARTED
      return runProgram([...asId(world.uid), ...words], { ...more, cwd, env: { ...env, ...more.env } })
    },
    inBackground: async (words, { uid, ...more } = {}) => {
      const as = uid === undefined ? becoming(world.user) : asId(uid)
      const child = spawn(as[0] ?? words[0] ?? '', [...as, ...words].slice(1), {
        cwd: more.cwd ?? world.cwd,
        env: { ...env, ...more.env },
        stdio: ['ignore', 'pipe', 'ignore'],
      })
      children.push(child)
      // A background program prints a line when it is ready.
      await new Promise<void>((resolve) => {
        child.stdout?.once('data', () => resolve())
        child.once('exit', () => resolve())
        child.once('error', () => resolve())
      })
      return child
    },
    end: () => {
      for (const child of children) child.kill('SIGKILL')
    },
  }
}

/** Apply, the log and the rules of a worker are the command's, not the library's. */
const OF_COMMAND = ['--apply', '--audit', '--worker']
const canBeHere = (words: readonly string[], { limitMs }: Inside): boolean =>
  limitMs === undefined && !OF_COMMAND.some((option) => words.includes(option))

const NOT_STARTED: Ran = { status: undefined, signal: null, hung: false, ms: 0, stdout: '', stderr: '' }

const asId = (uid: number): readonly string[] =>
  uid === process.getuid?.() ? [] : ['setpriv', '--reuid', `${uid}`, '--regid', `${uid}`, '--clear-groups', '--']

export const environmentOf = ({ home, runtime, base }: World): Record<string, string> => ({
  PATH: '/usr/local/bin:/usr/bin:/bin',
  HOME: home,
  XDG_RUNTIME_DIR: runtime,
  LANG: 'C.UTF-8',
  // By this the host finds what outlives a run.
  MARK: base,
  GIT_CONFIG_NOSYSTEM: '1',
})

export function runProgram(
  words: readonly string[],
  { cwd, env, limitMs = LIMIT_MS, onStart }: Inside & { readonly onStart?: (pid: number) => void },
): Promise<Ran> {
  const begun = performance.now()
  const [file = '', ...argv] = words
  const child = spawn(file, argv, {
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  if (child.pid !== undefined) onStart?.(child.pid)
  const out: Buffer[] = []
  const err: Buffer[] = []
  child.stdout?.on('data', (chunk: Buffer) => out.push(chunk))
  child.stderr?.on('data', (chunk: Buffer) => err.push(chunk))
  const state = { hung: false }
  return new Promise((resolve, reject) => {
    const limit = setTimeout(() => {
      state.hung = true
      child.kill('SIGKILL')
      child.stdout?.destroy()
      child.stderr?.destroy()
    }, limitMs)
    child.once('error', reject)
    child.once('close', (status, signal) => {
      clearTimeout(limit)
      resolve({
        ...{ status: status ?? undefined, signal, hung: state.hung, ms: performance.now() - begun },
        stdout: Buffer.concat(out).toString('latin1'),
        stderr: Buffer.concat(err).toString('latin1'),
      })
    })
  })
}

/** The runner refused the whole run, and said why. A missing backend refuses nothing, so it counts as no evidence. */
export const isRefused = ({ status, stdout, stderr }: Ran): boolean =>
  (status === 125 || status === 126) &&
  /^llm-do: (?!error (INTERNAL|NO_BACKEND|HELPER_MISSING))/m.test(stderr) &&
  !stdout.includes(BEGUN)

/** The first line of each script: it shows that the attack was really tried. */
export const BEGUN = 'attack begun'

/* ---- what the host sees ---- */

export interface HostState {
  /** Path -> kind, owner, mode, content. */
  readonly files: ReadonlyMap<string, string>
  /** Set-id bits and file capabilities. */
  readonly planted: readonly string[]
}

/** Below the base, what a run may change: the zone, caches, layers, and what the host was made to run. */
const isFree = (path: string): boolean =>
  /^(zone|cwd|count|runtime|marks|home\/\.(cache|config|local))(\/|$)/.test(path)

export function hostState(world: World): HostState {
  const files = new Map<string, string>()
  const visit = (below: string): void => {
    for (const name of readdirSync(join(world.base, below))) {
      const path = join(below, name)
      if (isFree(path)) continue
      const status = lstatSync(join(world.base, path))
      files.set(path, `${status.mode.toString(8)} ${status.uid} ${contentOf(join(world.base, path))}`)
      if (status.isDirectory()) visit(path)
    }
  }
  visit('')
  const planted = execFileSync(join(world.tools, 'scan'), [world.base], { encoding: 'utf8' })
    .split('\n')
    .filter(Boolean)
  return { files, planted }
}

function contentOf(path: string): string {
  const status = lstatSync(path)
  if (status.isSymbolicLink()) return readlinkSync(path)
  if (!status.isFile()) return ''
  if (status.size > CONTENT_LIMIT) return `${status.size} bytes`
  return createHash('sha256').update(readFileSync(path)).digest('hex')
}

/** Differences to the state before, whatever the attack was about. */
export async function harmTo(world: World, before: HostState, runs: readonly Ran[]): Promise<readonly string[]> {
  const after = hostState(world)
  const paths = new Set([...before.files.keys(), ...after.files.keys()])
  const changed = [...paths].filter((path) => before.files.get(path) !== after.files.get(path))
  const planted = after.planted.filter((line) => !before.planted.includes(line))
  const hung = runs.filter((ran) => ran.hung)
  return [
    ...changed.map((path) => `${path} changed`),
    ...planted.map((line) => `planted: ${line}`),
    ...(runs.some(({ stdout, stderr }) => `${stdout}${stderr}`.includes(world.token)) ? ['the secret was read'] : []),
    ...hung.map(({ ms }) => `a run did not end within ${Math.round(ms)} ms`),
    ...(await outliving(world)).map((line) => `outlives the run: ${line}`),
  ]
}

/** Processes that carry the mark, once the kernel has had its time. */
async function outliving({ base }: World): Promise<readonly string[]> {
  for (let left = 3_000; ; left -= 50) {
    const found = processesWith(base)
    if (found.length === 0 || left <= 0)
      return found.map((pid) => `${pid} ${readOr(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').slice(0, 80)}`)
    await sleep(50)
  }
}

/** Ends what a control left behind. */
export function endProcessesWith(word: string): void {
  for (const pid of processesWith(word)) signal(Number(pid), 'SIGKILL')
}

export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // It has just ended.
  }
}

/* ---- words for the rows ---- */

/** A file of the world, or nothing. */
export function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return undefined
  }
}

/** Writes a file as its owner would, with the directories above it. */
export function put(world: World, path: string, text: string, mode = 0o644): void {
  mkdirSync(join(path, '..'), { recursive: true })
  writeFileSync(path, text, { mode })
  if (world.uid === process.getuid?.()) return
  for (let at = path; at.startsWith(`${world.base}/`); at = join(at, '..')) chownSync(at, world.uid, world.uid)
}

/** Did code of the sandbox run on the host? Its payload makes this file. */
export const mark = (world: World, name: string): string => join(world.marks, name)
export const wasRun = (world: World, name: string): boolean => existsSync(mark(world, name))

/** Words as a shell reads them. */
export const quoted = (words: readonly string[]): string =>
  words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ')
