/**
 * The program that runs a WASI module in another node process, as text for `node --eval`: so it is the same from source,
 * from the bundle and from an installed package.
 * Edge: files and the end of that other process; this one only holds the text.
 *
 * The module gets 0, 1, 2 and the preopened directories. On the bare host the program reads its orders on descriptor 3 and
 * reports on descriptor 4. Inside the namespace sandbox only 0, 1 and 2 arrive, so there the orders come by variables and the
 * end is the report: node exits with the module's exit code, and everything else is a signal of END_SIGNALS. The module
 * cannot forge one: WASI's proc_raise is refused, and no code of it can print before the load has succeeded.
 * node:wasi knows no read-only directories, and node's permission model does not reach into it (a module wrote a file with
 * no write permission granted: node 20.20). So every call that changes something is judged here, before node:wasi sees it:
 * nothing changes below a read-only directory or at a protected path, nor above one, nor by way of a link.
 */

/** The runtime for WASI programs here. Made by the edge inputs.ts. */
export interface WasmInputs {
  /** Absolute path of node. */
  readonly node: string
  /** Words that switch node's permission model on, empty where this node has none. */
  readonly permission: readonly string[]
  /** Host path of a CPython compiled for WASI. */
  readonly python?: string
  /** Absolute path, where there is one; used when the plan says so. */
  readonly wasmtime?: string
}

export interface WasmOrders {
  /** Host path of the module. */
  readonly module: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly preopens: readonly WasmPreopen[]
}

export interface WasmPreopen {
  /** Path the module knows it by. */
  readonly guest: string
  readonly host: string
  readonly readonly: boolean
  /** Host paths that stay as they are. */
  readonly protect: readonly string[]
}

/** Variables of the node inside a sandbox: the orders without `env`, and before the name of each variable of the module. */
export const ORDERS_VARIABLE = 'LLM_DO_WASM_ORDERS'
export const MODULE_VARIABLE_PREFIX = 'LLM_DO_WASM_ENV_'

/** How the program ends inside a sandbox when the module did not exit. */
export const END_SIGNALS = { trap: 'SIGABRT', memory: 'SIGVTALRM', setup: 'SIGUSR2' } as const

/** One line on descriptor 4. */
export type WasmReport =
  | { readonly end: 'exit'; readonly code: number }
  | { readonly end: 'trap'; readonly message: string }
  | { readonly end: 'setup'; readonly step: string; readonly message: string }
  | { readonly end: 'memory'; readonly message: string }

/** Numbers of wasi_snapshot_preview1: github.com/WebAssembly/WASI, legacy/preview1/docs.md. */
export const WASM_PROGRAM = String.raw`
const { WASI } = require('node:wasi')
const { readFileSync, realpathSync, writeSync } = require('node:fs')
const { dirname, basename, join, sep } = require('node:path')

const EROFS = 69
const ENOTSUP = 58
const CREATE_OR_TRUNCATE = 1 | 8
// fd_datasync, fd_write, fd_allocate, fd_filestat_set_size
const WRITE_RIGHTS = (1n << 0n) | (1n << 6n) | (1n << 8n) | (1n << 22n)
const WRITE_DATA = (1n << 6n) | (1n << 8n) | (1n << 22n)
// path_create_directory .. path_link_target, path_rename_*, *_set_times, symlink, remove, unlink
const CHANGE_RIGHTS = [9, 10, 11, 12, 16, 17, 20, 23, 24, 25, 26].reduce((all, bit) => all | (1n << BigInt(bit)), WRITE_RIGHTS)

const inlineOrders = process.env.${ORDERS_VARIABLE}

function report(line) {
  if (inlineOrders === undefined) {
    writeSync(4, JSON.stringify(line) + '\n')
    process.exit(0)
  }
  if (line.end === 'exit') process.exit(line.code)
  if (line.end === 'setup') writeSync(2, line.step + ': ' + line.message.replaceAll('\n', ' ') + '\n')
  process.kill(process.pid, ${JSON.stringify(END_SIGNALS)}[line.end])
}

function attempt(step, work) {
  try {
    return work()
  } catch (error) {
    report({ end: /memory/i.test(error.message) && step === 'instantiate' ? 'memory' : 'setup', step, message: error.message })
  }
}

function passedOn() {
  const prefix = '${MODULE_VARIABLE_PREFIX}'
  const own = Object.entries(process.env).filter(([name]) => name.startsWith(prefix))
  return Object.fromEntries(own.map(([name, value]) => [name.slice(prefix.length), value]))
}

const orders = attempt('orders', () =>
  inlineOrders === undefined ? JSON.parse(readFileSync(3, 'utf8')) : { ...JSON.parse(inlineOrders), env: passedOn() })
const FIRST_PREOPEN = 3
// descriptor of the module -> { path on the host, preopen }
const open = new Map(orders.preopens.map((preopen, index) => [FIRST_PREOPEN + index, { path: preopen.host, preopen }]))
const machine = {}

function textAt(pointer, length) {
  return Buffer.from(machine.memory.buffer, pointer >>> 0, length >>> 0).toString('utf8')
}

/** Where a path leads, with every link on the way followed; what does not exist stays as it is written. */
function real(path) {
  try {
    return realpathSync(path)
  } catch {
    const parent = dirname(path)
    return parent === path ? path : join(real(parent), basename(path))
  }
}

function isWithin(path, above) {
  return path === above || path.startsWith(above.endsWith(sep) ? above : above + sep)
}

/** Whether a change at this path is forbidden. Descriptors that we did not see opened are 0, 1, 2. */
function isClosed(fd, path) {
  const from = open.get(fd)
  if (from === undefined) return false
  if (from.preopen.readonly) return true
  const target = join(from.path, path)
  // The link itself may be what is changed (unlink, rename), or what it leads to (open).
  const changed = [join(real(dirname(target)), basename(target)), real(target)]
  const foreign = orders.preopens.filter((preopen) => preopen.readonly).map((preopen) => preopen.host)
  const kept = orders.preopens.flatMap((preopen) => preopen.protect)
  return changed.some(
    (path) =>
      foreign.some((host) => isWithin(path, host) || isWithin(host, path)) ||
      kept.some((host) => isWithin(path, host) || isWithin(host, path)),
  )
}

function guard(imports) {
  const at = (fd, pointer, length) => isClosed(fd, textAt(pointer, length))
  const fixed = (fd) => open.get(fd)?.preopen.readonly === true
  const judges = {
    path_create_directory: (fd, path, length) => at(fd, path, length),
    path_remove_directory: (fd, path, length) => at(fd, path, length),
    path_unlink_file: (fd, path, length) => at(fd, path, length),
    path_filestat_set_times: (fd, _flags, path, length) => at(fd, path, length),
    path_symlink: (_old, _oldLength, fd, path, length) => at(fd, path, length),
    path_rename: (fd, path, length, newFd, newPath, newLength) => at(fd, path, length) || at(newFd, newPath, newLength),
    path_link: (fd, _flags, path, length, newFd, newPath, newLength) => at(fd, path, length) || at(newFd, newPath, newLength),
    fd_allocate: fixed,
    fd_filestat_set_size: fixed,
    fd_filestat_set_times: fixed,
    fd_pwrite: fixed,
    fd_write: fixed,
  }
  const guarded = Object.entries(judges).map(([name, isForbidden]) => [
    name,
    (...words) => (isForbidden(...words) ? EROFS : imports[name](...words)),
  ])
  return { ...imports, ...Object.fromEntries(guarded), path_open: opener(imports), proc_raise: () => ENOTSUP, fd_close: closer(imports), fd_renumber: renumberer(imports) }
}

function opener(imports) {
  return (fd, flags, path, length, how, rights, inheriting, fdFlags, result) => {
    const name = textAt(path, length)
    const writes = (how & CREATE_OR_TRUNCATE) !== 0 || (rights & WRITE_DATA) !== 0n
    const closed = isClosed(fd, name)
    if (writes && closed) return EROFS
    const kept = closed ? [rights & ~CHANGE_RIGHTS, inheriting & ~CHANGE_RIGHTS] : [rights, inheriting]
    const errno = imports.path_open(fd, flags, path, length, how, ...kept, fdFlags, result)
    const from = open.get(fd)
    if (errno === 0 && from !== undefined) {
      const opened = new DataView(machine.memory.buffer).getUint32(result >>> 0, true)
      open.set(opened, { path: real(join(from.path, name)), preopen: from.preopen })
    }
    return errno
  }
}

function closer(imports) {
  return (fd) => {
    const errno = imports.fd_close(fd)
    if (errno === 0) open.delete(fd)
    return errno
  }
}

function renumberer(imports) {
  return (from, to) => {
    const errno = imports.fd_renumber(from, to)
    if (errno !== 0) return errno
    if (open.has(from)) open.set(to, open.get(from))
    else open.delete(to)
    open.delete(from)
    return errno
  }
}

const wasi = attempt('preopen', () => new WASI({
  version: 'preview1',
  args: orders.args,
  env: orders.env,
  preopens: Object.fromEntries(orders.preopens.map(({ guest, host }) => [guest, host])),
  returnOnExit: true,
}))
const bytes = attempt('read', () => readFileSync(orders.module))
const module_ = attempt('compile', () => new WebAssembly.Module(bytes))
const imports = guard(wasi.getImportObject().wasi_snapshot_preview1)
const instance = attempt('instantiate', () => new WebAssembly.Instance(module_, { wasi_snapshot_preview1: imports }))
attempt('exports', () => {
  if (!(instance.exports.memory instanceof WebAssembly.Memory)) throw new Error('the module exports no memory')
  if (typeof instance.exports._start !== 'function') throw new Error('the module has no _start: it is a library, not a command')
})
machine.memory = instance.exports.memory
try {
  report({ end: 'exit', code: wasi.start(instance) })
} catch (error) {
  report({ end: 'trap', message: String(error.message) })
}
`
