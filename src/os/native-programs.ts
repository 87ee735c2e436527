/**
 * Where the package and its native programs are, and whether these can be trusted.
 * Edge: reads the package's own files.
 */
import { closeSync, constants, existsSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs'
import path from 'node:path'
import { SandboxError } from '../error.ts'
import { isInsideOwn } from './inside-own.ts'
import { may } from './look.ts'

/** Everything on the host outside of a sandbox, the first process inside, and what serves a restricted network. */
export const NATIVE_PROGRAMS = ['llm-do', 'init', 'net'] as const

/** The parts of the first one that are programs of their own (native/tools/llm-do.c). */
export type HostPart = 'launch' | 'runs' | 'layers' | 'exec-in' | 'guard' | 'pool'

export interface HostCall {
  readonly file: string
  readonly argv: readonly string[]
}

/** The first word that starts a part. */
export const partWord = (part: HostPart): string => `__${part}`

export function hostCall(part: HostPart, words: readonly string[], directory = nativeDirectory()): HostCall {
  return { file: path.join(directory, 'llm-do'), argv: [partWord(part), ...words] }
}

const REBUILD = 'make native   (or: npm install llm-do-exec)'

/** Root of the installed package: two directories above this module in the sources, one above it in the bundle. */
export function packageRoot(): string {
  const above = path.dirname(import.meta.dirname)
  return existsSync(path.join(above, 'package.json')) ? above : path.dirname(above)
}

export function packageVersion(): string {
  const manifest = JSON.parse(readFileSync(path.join(packageRoot(), 'package.json'), 'utf8')) as { version: string }
  return manifest.version
}

/** @returns the directory; where none has them the package's own, which messages then name */
export function nativeDirectory(): string {
  const root = packageRoot()
  const found = [root, ...nativePackages(root)].find((place) => existsSync(path.join(place, 'bin/init')))
  return path.join(found ?? root, 'bin')
}

/** Places of a package that the one at `root` asks for: npm installs it there or next to it. */
function packagesNamed(name: string, root: string): readonly string[] {
  const modules = path.dirname(root)
  return path.basename(modules) === 'node_modules'
    ? [path.join(root, 'node_modules', name), path.join(modules, name)]
    : []
}

/** The package of the native programs is complete but for the library (packaging/npm.mjs). */
const nativePackages = (root: string): readonly string[] =>
  packagesNamed(`@llm-do/exec-${process.platform}-${process.arch}`, root)

/** @returns the root of `llm-do-exec`, as seen from the package that holds this module */
function commandPackage(root: string): string {
  const scope = path.dirname(root)
  if (path.basename(scope) !== '@llm-do') return root
  const modules = path.dirname(scope)
  const around = path.dirname(modules)
  return path.basename(around) === 'llm-do-exec' ? around : path.join(modules, 'llm-do-exec')
}

/** Places of the package with the files of a fleet. */
export const fleetPackages = (root: string = packageRoot()): readonly string[] =>
  packagesNamed('@llm-do/exec-fleet', commandPackage(root))

/** The packages that the next run is started from, as seen from the one that holds this module: with those of them that may yet come. */
export function packagePlaces(root: string = packageRoot()): readonly string[] {
  const command = commandPackage(root)
  return [root, ...(command === root ? [] : [command]), ...nativePackages(command)]
}

/** The file that node runs; it names the rest of the built program by check sums, so a program that was built anew is another file here. */
export const builtProgram = (): string => path.join(packageRoot(), 'dist/cli.cjs')

/** The programs that build a sandbox, and the one that answers for names where its network is not the host's. */
export function nativeFiles({ isHostNetwork }: { readonly isHostNetwork: boolean }): readonly string[] {
  return NATIVE_PROGRAMS.filter((name) => name !== 'net' || !isHostNetwork).map((name) =>
    path.join(nativeDirectory(), name),
  )
}

/**
 * Refuses native programs that are missing, made for another machine, or that somebody else could have changed.
 * @throws SandboxError HELPER_MISSING
 */
export function checkNativePrograms(directory: string, arch: string): void {
  for (const name of NATIVE_PROGRAMS) checkNativeProgram(path.join(directory, name), arch)
}

/** The same for one that only some verbs start. */
export function checkNativeProgram(file: string, arch: string): void {
  const fd = openHelper(file)
  try {
    const status = fstatSync(fd)
    if (!status.isFile()) throw helperError(file, 'is not a regular file', REBUILD)
    if ((status.mode & 0o022) !== 0) throw helperError(file, 'can be written by others', `chmod go-w ${file}`)
    if (isForeign(status.uid)) throw foreignOwner(file, status.uid)
    const header = Buffer.alloc(20)
    readSync(fd, header, 0, header.length, 0)
    const machine = machineOf(header)
    if (machine !== arch) throw helperError(file, `is made for ${machine}, this machine is ${arch}`, REBUILD)
  } finally {
    closeSync(fd)
  }
  if (!may(file)) throw helperError(file, 'cannot be executed', `chmod 755 ${file}`)
}

/** Owner that the kernel shows for an id that is not mapped in this user namespace (fs.overflowuid); no mapped user's files have it. */
const UNMAPPED_OWNER = 65534

/** In a sandbox of our own no process can be that owner, or make a file of it: the sandbox around it shows it. */
const isShownFromOutside = (uid: number): boolean => uid === UNMAPPED_OWNER && isInsideOwn()

/** Neither root nor this user: who could change what the file says. Never on a system without such numbers. */
export function isForeign(owner: number): boolean {
  const own = process.getuid?.()
  return own !== undefined && owner !== 0 && owner !== own && !isShownFromOutside(owner)
}

function foreignOwner(file: string, uid: number): SandboxError {
  const expected = 'expected root or yourself'
  if (uid !== UNMAPPED_OWNER || !isInUserNamespace())
    return helperError(file, `belongs to user ${uid}, ${expected}`, `sudo chown root ${path.dirname(file)}/*`)
  return helperError(
    file,
    `belongs to a user who has no id in this user namespace, ${expected}`,
    `run llm-do outside of this user namespace, or a copy of your own: cp -r ${packageRoot()} COPY`,
  )
}

/** The first one maps every id to itself. */
function isInUserNamespace(): boolean {
  return readFileSync('/proc/self/uid_map', 'utf8').trim().split(/\s+/).join(' ') !== '0 0 4294967295'
}

function openHelper(file: string): number {
  try {
    return openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW)
  } catch (cause) {
    const { code = 'unknown' } = cause as NodeJS.ErrnoException
    throw helperError(file, `cannot be opened (${code})`, REBUILD)
  }
}

/** e_machine of the ELF header (elf(5)) as node names architectures. */
const MACHINES: Readonly<Record<number, string>> = { 62: 'x64', 183: 'arm64' }

function machineOf(header: Buffer): string {
  const isElf = header.subarray(0, 4).equals(Buffer.from('\x7fELF', 'latin1'))
  return isElf ? (MACHINES[header.readUInt16LE(18)] ?? 'an unknown machine') : 'no machine (not an ELF file)'
}

function helperError(file: string, what: string, hint: string): SandboxError {
  return new SandboxError('HELPER_MISSING', `native program ${file} ${what}`, { hint })
}
