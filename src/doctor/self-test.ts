/**
 * Tries the contract in real sandboxes: for each row a fresh site, the attempts, a look at the host, the verdict.
 * Edge: process.env, processes (by exec).
 */
import { createHash } from 'node:crypto'
import { SandboxError } from '../error.ts'
import type { SandboxInput } from '../policy/keys/index.ts'
import type { EngineName } from '../policy/values.ts'
import type { Result } from '../report/result.ts'
import type { Environment } from '../run/caller.ts'
import { exec } from '../run/exec.ts'
import type { ExecOptions } from '../run/plan-run.ts'
import {
  type Attempt,
  NO_RUN,
  type ObservedRun,
  type Row,
  type TestSite,
  type Verdict,
  verdictOf,
} from './contract-types.ts'
import { prepareTestSite } from './test-site.ts'

export interface RowResult {
  readonly id: Row['id']
  readonly sentence: string
  readonly engine: EngineName
  readonly verdict: Verdict
}

/** Runs an attempt: our own chain, or for a negative control something weaker. */
export type Runner = (attempt: Attempt, site: TestSite) => Promise<ObservedRun>

export interface SelfTestInputs {
  readonly rows: readonly Row[]
  readonly engines: readonly EngineName[]
  readonly landlockAbi: number
  /** The caller's. */
  readonly env: Environment
  readonly onResult?: (result: RowResult) => void
  /** Ends the test after the row that is being tried, so that its site is removed. */
  readonly signal?: AbortSignal
}

/** Every row with every engine, one after the other. */
export async function selfTest({
  rows,
  engines,
  landlockAbi,
  env,
  onResult,
  signal,
}: SelfTestInputs): Promise<readonly RowResult[]> {
  const results: RowResult[] = []
  const runner = runnerBy(exec, env)
  for (const engine of engines) {
    for (const row of rows) {
      if (signal?.aborted) return results
      const verdict = await tryRow(row, { engine, landlockAbi, runner })
      const result = { id: row.id, sentence: row.sentence, engine, verdict }
      results.push(result)
      onResult?.(result)
    }
  }
  return results
}

export interface Trial {
  readonly engine: EngineName
  readonly landlockAbi: number
  readonly runner: Runner
}

/** Tries one row on a new site. A row that cannot be tried is broken, never passed over. */
export async function tryRow(row: Row, { engine, landlockAbi, runner }: Trial): Promise<Verdict> {
  const { site, observe, remove } = await prepareTestSite({ engine, landlockAbi })
  try {
    const attempts = row.attempts(site)
    const runs = row.together
      ? await Promise.all(attempts.map((attempt) => runner(attempt, site)))
      : await oneByOne(attempts, (attempt) => runner(attempt, site))
    return verdictOf(row, { runs, hostState: await observe() }, site)
  } finally {
    await remove()
  }
}

async function oneByOne<In, Out>(all: readonly In[], work: (one: In) => Promise<Out>): Promise<readonly Out[]> {
  const done: Out[] = []
  for (const one of all) done.push(await work(one))
  return done
}

/** Tries attempts by a way to run commands. */
export const runnerBy =
  (run: (options: ExecOptions) => Promise<Result>, callerEnv: Environment = process.env): Runner =>
  async (attempt, site) => {
    const hash = createHash('sha256')
    try {
      const result = await run({
        ...optionsOf(attempt, site, callerEnv),
        onStdout: (chunk) => void hash.update(chunk),
      })
      return observedRun(result, hash.digest('hex'))
    } catch (error) {
      if (!(error instanceof SandboxError)) throw error
      return refusedRun(error)
    }
  }

/** By the same door as every other run. */
export const runInSandbox: Runner = runnerBy(exec)

function optionsOf({ command, policy, stdin, env }: Attempt, site: TestSite, callerEnv: Environment): ExecOptions {
  return {
    command,
    cwd: site.base,
    env: { ...plainEnvironment(callerEnv), ...env },
    mode: 'capture',
    stdin: stdin ?? 'ignore',
    layers: [layer(site, basePolicy(site)), ...(policy === undefined ? [] : [layer(site, policy)])],
  }
}

const layer = ({ base }: TestSite, values: SandboxInput) => ({
  layer: 'flag' as const,
  source: 'self-test',
  directory: base,
  values,
})

function basePolicy({ engine, shown, writable }: TestSite): SandboxInput {
  return {
    backend: 'namespace',
    engine,
    workspace: 'none',
    toolchains: 'off',
    workdir: '/tmp',
    zones: [
      { name: 'shown', mode: 'ro', hostPath: shown, target: shown },
      { name: 'writable', mode: 'rw', hostPath: writable, target: writable },
    ],
  }
}

/** The caller's environment without what would change the policy under test. */
function plainEnvironment(env: Environment): Environment {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !/^(LLM_DO_EXEC_|DOCKER_)/.test(name)))
}

function observedRun(result: Result, stdoutSha256: string): ObservedRun {
  const { stdout, stderr, truncated, exitCode, signal, reason, error, limits, durationMs } = result
  return {
    stdout,
    stderr,
    stdoutSha256,
    truncated: truncated.stdout,
    exitCode,
    signal,
    reason,
    durationMs,
    ...(error === undefined ? {} : { errorCode: error.code, errorMessage: error.message }),
    ...(limits.memory === undefined ? {} : { memoryBy: limits.memory.by }),
    ...(limits.cpus === undefined ? {} : { cpusBy: limits.cpus.by }),
  }
}

const refusedRun = ({ code, message }: SandboxError): ObservedRun => ({
  ...NO_RUN,
  refused: { code, message },
  reason: 'denied',
})
