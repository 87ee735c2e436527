/**
 * The terminator of one run (src/terminator/main.ts), as the runner has it: started before launch, told the secrets by a pipe, and ended
 * after it. Should this process be killed, the end of that pipe ends it.
 * Edge: processes, pipes, the clock, the host's bundle of certificates.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { NODE_WITHOUT_DEBUGGER } from '../../contract.ts'
import { SandboxError } from '../../error.ts'
import type { TerminatedHost, TerminatorLine, TerminatorSetup } from '../../network/termination.ts'
import { packageRoot } from '../../os/native-programs.ts'
import { promised } from '../../os/promised.ts'
import type { PlannedTrust } from '../../plan/plan.ts'
import { jsonIn } from '../../text/json.ts'
import type { Outcome, TerminatorReport } from '../outcome.ts'

/** The terminator's part of a launch. */
export interface Terminating {
  /** The host's certificates and the run's own, for the command. */
  readonly trustBundle: string
  /** For the helper of the network; the one who has it closes it. */
  readonly channel: Socket
}

export interface TerminatorInputs {
  readonly trust: PlannedTrust
  readonly hosts: readonly TerminatedHost[]
}

/**
 * Runs with a terminator.
 * @throws SandboxError SETUP_FAILED when it cannot be started
 */
export async function withTerminator(
  { trust, hosts }: TerminatorInputs,
  run: (terminating: Terminating) => Promise<Outcome>,
): Promise<Outcome> {
  const certificates = readTrust(trust.source)
  const child = spawnTerminator()
  const gone = new Promise((resolve) => {
    child.once('exit', resolve)
    child.once('error', resolve)
  })
  const [, , , channel] = child.stdio as unknown as readonly [Writable, Readable, null, Socket]
  try {
    const lines = linesOf(child)
    const setup: TerminatorSetup = { trust: certificates, hosts }
    child.stdin?.write(`${JSON.stringify(setup)}\n`)
    const ca = await lines.ca
    if (ca === undefined) throw cannotStart()
    const outcome = await run({ trustBundle: `${certificates}\n${ca}`, channel })
    return withReport(outcome, await endOf(child, lines.report))
  } finally {
    channel.destroy()
    child.kill('SIGKILL')
    await gone
  }
}

function readTrust(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    const { code = 'unknown' } = cause as NodeJS.ErrnoException
    throw new SandboxError('SETUP_FAILED', `${path}: this host's certificates cannot be read (${code})`, {
      hint: 'apt-get install --reinstall ca-certificates',
      cause,
    })
  }
}

/** More than all of its connections take. */
const HEAP_MIB = 128
const CHANNEL_FD = 3

function spawnTerminator(): ChildProcess {
  const program = join(packageRoot(), 'dist/terminator.cjs')
  const child = spawn(process.execPath, [NODE_WITHOUT_DEBUGGER, `--max-old-space-size=${HEAP_MIB}`, program], {
    // By these node takes descriptors from its parent (child_process of node's documents); nothing of the caller's environment.
    env: { NODE_CHANNEL_FD: String(CHANNEL_FD), NODE_CHANNEL_SERIALIZATION_MODE: 'json' },
    cwd: '/',
    // A new session: the terminal's Ctrl-C must not reach it.
    detached: true,
    stdio: ['pipe', 'pipe', 'ignore', 'pipe'],
  })
  child.stdin?.on('error', () => child.stdin?.destroy())
  return child
}

interface Lines {
  /** Undefined when it has ended before. */
  readonly ca: Promise<string | undefined>
  readonly report: Promise<TerminatorReport>
}

const LOST: TerminatorReport = { refused: [], omitted: 0, isLost: true }

const hasStrings = (value: unknown, ...names: readonly string[]): boolean =>
  typeof value === 'object' && value !== null && names.every((name) => typeof Reflect.get(value, name) === 'string')

function isLine(value: unknown): value is TerminatorLine {
  if (hasStrings(value, 'ca')) return true
  if (!hasStrings(value)) return false
  const { refused, omitted } = value as { readonly refused?: unknown; readonly omitted?: unknown }
  return (
    Array.isArray(refused) &&
    refused.every((one) => hasStrings(one, 'host', 'kind', 'what')) &&
    Number.isInteger(omitted)
  )
}

/** @returns undefined for text that no terminator writes: it was taken over, and ends as if it had been killed */
export function lineOf(text: string): TerminatorLine | undefined {
  const value = jsonIn(text)
  return isLine(value) ? value : undefined
}

function linesOf(child: ChildProcess): Lines {
  const [ca, report] = [promised<string | undefined>(), promised<TerminatorReport>()]
  const over = (): void => {
    ca.resolve(undefined)
    report.resolve(LOST)
  }
  child.once('error', over)
  const lines = createInterface({ input: child.stdout as Readable })
  lines.on('line', (text) => {
    const line = lineOf(text)
    if (line === undefined) child.kill('SIGKILL')
    else if ('ca' in line) ca.resolve(line.ca)
    else report.resolve({ ...line, isLost: false })
  })
  lines.once('close', over)
  return { ca: ca.promise, report: report.promise }
}

/** Milliseconds for its last line. */
const PATIENCE_MS = 5_000

async function endOf(child: ChildProcess, report: Promise<TerminatorReport>): Promise<TerminatorReport> {
  const wedged = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS)
  child.stdin?.end()
  const told = await report
  clearTimeout(wedged)
  return told
}

const withReport = (outcome: Outcome, terminated: TerminatorReport): Outcome =>
  outcome.network === undefined ? outcome : { ...outcome, network: { ...outcome.network, terminated } }

const cannotStart = (): SandboxError =>
  new SandboxError('SETUP_FAILED', `the terminator (${process.execPath}) has ended before it could serve`, {
    hint: 'npm install llm-do-exec, or leave out network.terminate',
  })
