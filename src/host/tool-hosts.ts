/**
 * The configuration of the caller's tools: answers the questions of src/network/tools, and keeps which files, directories and variables
 * the answers depend on, so that a plan made from them can tell when it is stale.
 * Edge: files, directories, programs of the host.
 */
import { lstatSync } from 'node:fs'
import { delimiter, dirname, isAbsolute, join } from 'node:path'
import { type GitIdentity, gitIdentity } from '../network/tools/git.ts'
import { hostsOf, type ToolHosts } from '../network/tools/index.ts'
import type { Look } from '../network/tools/look.ts'
import type { ToolName } from '../network/tools/names.ts'
import { namesIn, realOf, startOf, textOf } from '../os/look.ts'
import { runProgram } from '../os/run-program.ts'
import { recallOrFind } from './boot-cache.ts'
import { linkText } from './paths.ts'
import { type FoundProgram, findProgram, withTrustedPath } from './program.ts'

type Environment = Readonly<Record<string, string | undefined>>

export interface ToolQuestion {
  readonly names: readonly ToolName[]
  readonly env: Environment
  readonly home: string
  /** Canonical. */
  readonly cwd: string
  readonly uid: number
  /** Where commands can write: no program from there is started. */
  readonly notBelow: readonly string[]
  /** Where answers of programs are remembered, out of reach of any zone; undefined = nowhere. */
  readonly cache: string | undefined
}

/** Inspected places, for people and for the launch cache. */
export interface Looked {
  /** Files and directories that were there, as they were found and canonical. */
  readonly read: readonly string[]
  readonly missing: readonly string[]
  /** Of the two, those by which the caller's tools are set up. */
  readonly deciding: readonly string[]
  readonly variables: readonly { readonly name: string; readonly isSet: boolean }[]
  /** A program was asked. */
  readonly isAsked: boolean
}

export interface ToolAnswer extends ToolHosts {
  readonly looked: Looked
}

export async function observeToolHosts({ names, ...question }: ToolQuestion): Promise<readonly ToolAnswer[]> {
  return await Promise.all(
    names.map(async (name) => {
      const { look, looked } = newLook(question)
      const hosts = await hostsOf(name, look)
      return { ...hosts, looked: looked() }
    }),
  )
}

/** Of git of the caller, in the same way. */
export function observeGitIdentity(question: Omit<ToolQuestion, 'names'>): GitIdentity & { readonly looked: Looked } {
  const { look, looked } = newLook(question)
  return { ...gitIdentity(look), looked: looked() }
}

/** Largest file that is read, in bytes; whatever is behind that names no host. */
const LARGEST_FILE = 1024 ** 2
/** A tool that takes longer has no answer. */
const PATIENCE_MS = 10_000
/** npm refuses to start without a home for a user without an account, as in many containers. Nothing can be read or made below this one. */
const NO_HOME = '/dev/null'

function newLook(question: Omit<ToolQuestion, 'names'>): { readonly look: Look; readonly looked: () => Looked } {
  const { env, home, cwd, uid, notBelow, cache } = question
  const [read, missing, deciding] = [new Set<string>(), new Set<string>(), new Set<string>()]
  const variables = new Map<string, boolean>()
  const asked: string[] = []
  const path = (env['PATH'] ?? '').split(delimiter)
  const configHome = env['XDG_CONFIG_HOME'] ?? ''
  const note = (file: string): void => {
    const real = realOf(file)
    if (real === undefined) missing.add(file)
    else for (const one of [file, real]) read.add(one)
  }
  const text = (file: string): string | undefined => {
    if (!isAbsolute(file)) return undefined
    note(file)
    return startOf(file, LARGEST_FILE)
  }
  const find = (name: string) => findProgram({ name, path, notBelow, uid })
  const look: Look = {
    home,
    cwd,
    configHome: isAbsolute(configHome) ? configHome : join(home, '.config'),
    variable: (name) => {
      variables.set(name, env[name] !== undefined)
      return env[name] || undefined
    },
    text: (file) => {
      deciding.add(file)
      return text(file)
    },
    projectText: text,
    names: (directory) => {
      note(directory)
      return namesIn(directory).toSorted()
    },
    ownKind: (file) => {
      note(file)
      return ownKindOf(file, uid)
    },
    program: (name) => find(name)?.path,
    ask: async (name, argv) => {
      const program = find(name)
      if (program === undefined || program.setuid) return undefined
      asked.push(name)
      const { PATH = '' } = withTrustedPath({ PATH: path.join(delimiter) }, notBelow)
      return answerOf({ program, argv, PATH }, { cache, uid })
    },
  }
  const looked = () => ({
    read: [...read],
    missing: [...missing],
    deciding: [...deciding],
    variables: [...variables].map(([name, isSet]) => ({ name, isSet })),
    isAsked: asked.length > 0,
  })
  return { look, looked }
}

interface ToolCall {
  readonly program: FoundProgram
  readonly argv: readonly string[]
  readonly PATH: string
}

/**
 * The answer of a program, remembered for the boot: npm takes a quarter of a second of processor time. It is asked again when its file or
 * PATH changes, and after it failed.
 */
function answerOf({ program, argv, PATH }: ToolCall, { cache: directory, uid }: Pick<ToolQuestion, 'cache' | 'uid'>) {
  const places = [textOf('/proc/sys/kernel/random/boot_id'), linkText('/proc/self/ns/mnt')]
  const key = ['answer', program.path, program.stamp, PATH, ...places, ...argv].join('\n')
  return recallOrFind<string | undefined>(directory === undefined ? undefined : { directory, uid, key }, {
    find: async () => {
      const end = await runProgram({ file: program.path, argv, env: { PATH, HOME: NO_HOME }, patienceMs: PATIENCE_MS })
      return end.ok ? end.stdout : undefined
    },
    isLasting: (answer) => answer !== undefined,
    holds: () => true,
  })
}

function ownKindOf(file: string, uid: number): 'file' | 'directory' | undefined {
  try {
    // A link of somebody else's could lead to another repository of the caller.
    const [seen, holder] = [lstatSync(file), lstatSync(dirname(file))]
    if (seen.uid !== uid || holder.uid !== uid) return undefined
    return seen.isDirectory() ? 'directory' : seen.isFile() ? 'file' : undefined
  } catch {
    return undefined // There is none, or none that this user may know of.
  }
}
