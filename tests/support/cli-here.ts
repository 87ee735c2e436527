/**
 * Subcommands in this process, with the words, bytes and status of the command: what runCli() gives, without the start of a Node.
 *
 *     const { status, stderr } = await cliHere(['apply', id], { cwd: project, env: { HOME: home } })
 *
 * Not for a run that hands its own streams to a command (`exec` without `--json`), and not for a test about the command's process.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Call } from '../../src/cli/call.ts'
import * as exec from '../../src/cli/commands/exec.ts'
import * as layer from '../../src/cli/commands/layer.ts'
import { logs } from '../../src/cli/commands/logs.ts'
import { prune } from '../../src/cli/commands/prune.ts'
import { ps } from '../../src/cli/commands/ps.ts'
import { stop } from '../../src/cli/commands/stop.ts'
import type { Subcommand } from '../../src/cli/subcommand.ts'
import { SandboxError } from '../../src/error.ts'
import { errorLines } from '../../src/report/text.ts'
import { type CliResult, environmentOf } from './cli.ts'
import { currentUser } from './users.ts'

const { changes, diff, apply, undo, discard } = layer
const SUBCOMMANDS: Readonly<Record<string, Subcommand>> = {
  exec: exec.exec,
  changes,
  diff,
  apply,
  undo,
  discard,
  logs,
  prune,
  ps,
  stop,
}

interface Here {
  readonly cwd: string
  readonly stdout: Uint8Array[]
  readonly stderr: Uint8Array[]
}

/** Several calls at once keep their directories and their bytes apart. */
const calls = new AsyncLocalStorage<Here>()

type Write = (bytes: string | Uint8Array, done?: (error?: Error) => void) => boolean

/** Until the last of the calls has ended, what this process writes and where it is are those of the call. */
const patched = { calls: 0, restore: (): void => undefined }

function patch(): () => void {
  const { cwd, stdout, stderr } = process
  const writes = { stdout: stdout.write, stderr: stderr.write }
  const to = (name: 'stdout' | 'stderr'): Write =>
    function (this: NodeJS.WriteStream, bytes, done) {
      const here = calls.getStore()
      if (here === undefined) return (writes[name] as Write).call(this, bytes, done)
      here[name].push(Buffer.from(bytes as Uint8Array))
      if (done !== undefined) queueMicrotask(done)
      return true
    }
  process.cwd = () => calls.getStore()?.cwd ?? cwd.call(process)
  stdout.write = to('stdout') as typeof stdout.write
  stderr.write = to('stderr') as typeof stderr.write
  return () => {
    process.cwd = cwd
    Object.assign(stdout, { write: writes.stdout })
    Object.assign(stderr, { write: writes.stderr })
  }
}

async function inPatched<T>(run: () => Promise<T>): Promise<T> {
  if (patched.calls++ === 0) patched.restore = patch()
  try {
    return await run()
  } finally {
    if (--patched.calls === 0) patched.restore()
  }
}

/** As main.ts does with what a subcommand throws. */
async function statusOf(subcommand: Subcommand, call: Call, here: Here): Promise<number> {
  try {
    return await subcommand(call)
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error
    here.stderr.push(...errorLines(error).map((line) => Buffer.from(`${line}\n`)))
    return 125
  }
}

export const canBeHere = ([verb = '', ...rest]: readonly string[]): boolean =>
  verb === 'exec' ? rest.slice(0, rest.indexOf('--')).some((word) => word.startsWith('--json')) : verb in SUBCOMMANDS

export async function cliHere(
  [verb = '', ...text]: readonly string[],
  { cwd, env }: { readonly cwd: string; readonly env: Readonly<Record<string, string>> },
): Promise<CliResult> {
  const subcommand = SUBCOMMANDS[verb]
  if (subcommand === undefined) throw new Error(`cliHere: no subcommand ${verb}`)
  const here: Here = { cwd, stdout: [], stderr: [] }
  const call: Call = { text, env: { ...environmentOf(currentUser()), ...env }, parent: process.ppid }
  const status = await inPatched(() => calls.run(here, () => statusOf(subcommand, call, here)))
  return { status, signal: undefined, stdout: Buffer.concat(here.stdout), stderr: Buffer.concat(here.stderr) }
}
