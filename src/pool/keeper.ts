/**
 * Starts native/tools/pool-keeper.c, which builds sandboxes and keeps them ready, and hears how it goes.
 * Edge: processes, pipes, unlinked temporary files.
 *
 * The keeper prints `ready ID` for each sandbox, `failed` with launch's report when it gives up, `kept` when another keeper has
 * the place. Its parent may end.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { openUnlinked } from '../backends/child-process.ts'
import { parseLaunchStatus } from '../backends/launch-status.ts'
import { SandboxError } from '../error.ts'
import { hostCall } from '../os/native-programs.ts'
import { runProgramSync } from '../os/run-program.ts'

export interface KeeperInputs {
  /** Directory of all pools of the user. */
  readonly pools: string
  readonly name: string
  /** Sandboxes that are kept ready, 1 to 64. */
  readonly size: number
  /** Seconds without a run after which it ends; 0 = never. */
  readonly idleSeconds: number
  readonly launchFile: Uint8Array
  /** Where it is started, for people. */
  readonly directory: string
}

/** Descriptor 3 of native/tools/pool-keeper.c: the launch file. */
function startKeeper({ pools, name, size, idleSeconds, launchFile, directory }: KeeperInputs): ChildProcess {
  const file = openUnlinked(launchFile)
  const { file: program, argv } = hostCall('pool', ['keep', pools, name, String(size), String(idleSeconds), directory])
  const child = spawn(program, argv, { stdio: ['ignore', 'pipe', 'pipe', file], env: {}, cwd: '/', detached: true })
  closeSync(file)
  return child
}

/** The first word that it prints, with the rest of its line; without a word, what it has complained of. */
function firstWord(child: ChildProcess): Promise<readonly [word: string, rest: string]> {
  const complaint: string[] = []
  child.stderr?.on('data', (chunk: Buffer) => complaint.push(chunk.toString()))
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(['', error.message]))
    child.once('close', () => resolve(['', complaint.join('').trim()]))
    if (child.stdout !== null)
      createInterface({ input: child.stdout }).once('line', (line) => {
        const end = line.indexOf(' ')
        resolve([line.slice(0, end), line.slice(end + 1)])
      })
  })
}

function whyOf(report: string): string {
  const status = parseLaunchStatus(report)
  if (status === undefined) return ''
  return [status.step, status.path, status.detail.trim()].filter((part) => part !== '').join(': ')
}

function release(child: ChildProcess): void {
  for (const stream of child.stdio) (stream as Readable | null)?.destroy()
  child.removeAllListeners()
  child.unref()
}

/**
 * Starts a keeper that stays, and waits until its first sandbox is ready.
 * @returns false when there was a keeper already
 * @throws SandboxError SETUP_FAILED when none can be built
 */
export async function startDetached(inputs: KeeperInputs): Promise<boolean> {
  const keeper = startKeeper(inputs)
  const [word, rest] = await firstWord(keeper)
  release(keeper)
  if (word === 'ready' || word === 'kept') return word === 'ready'
  const why = word === 'failed' ? whyOf(rest) : rest
  throw new SandboxError('SETUP_FAILED', `no sandbox of the pool could be built: ${why || 'the keeper ended'}`, {
    hint: 'run the same options once: llm-do exec [options] -- true',
  })
}

/** A keeper has the words of its options, of which the kernel takes two megabytes at most. */
const MOST_OUTPUT = 2 ** 28

/**
 * Asks about the keepers of a user.
 * @param names with `stop`: only these
 * @returns what it printed: a line of JSON a keeper, or how many were ended, or cleaned up after
 * @throws SandboxError when it cannot do its work
 */
export function runPoolProgram(
  action: 'status' | 'stop' | 'prune',
  pools: string,
  names: readonly string[] = [],
): string {
  const call = hostCall('pool', [action, pools, ...names])
  const { status, stdout, stderr } = runProgramSync({ ...call, env: {}, mostOutput: MOST_OUTPUT })
  if (status === 'ENOENT')
    throw new SandboxError('HELPER_MISSING', `${call.file}: no such file.`, { hint: 'make native' })
  if (status === 0) return stdout.trimEnd()
  throw new SandboxError('BACKEND_FAILED', `pool ${action}: ${stderr.trim() || `${call.file} failed`}`, {
    hint: 'ls -ld the directory named above; it must be yours alone',
  })
}
