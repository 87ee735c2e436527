/**
 * `llm-do doctor`: what this machine can hold and the fix for what it cannot; `--self-test` tries the security contract.
 *
 * Edge: stdio, signals.
 */

import { namespaceOffers } from '../../backends/namespace/offers.ts'
import { doctor as examine, observeForDoctor } from '../../doctor/checks.ts'
import { CONTRACT } from '../../doctor/rows/index.ts'
import { type RowResult, selfTest } from '../../doctor/self-test.ts'
import { reportText, rowText, summaryText } from '../../doctor/text.ts'
import { SandboxError } from '../../error.ts'
import type { EngineName } from '../../policy/values.ts'
import type { Environment } from '../call.ts'
import { hostEnvironment } from '../current-directory.ts'
import { writeStdout } from '../stdio.ts'
import { FOUND_PROBLEMS, subcommand } from '../subcommand.ts'
import { usageError } from '../usage-error.ts'

/** As for a run that was cancelled. */
const CANCELLED = 130

const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`

export const doctor = subcommand('doctor', async ({ flags }, call) => {
  const env = hostEnvironment(call)
  const asJson = flags['json'] === true
  const named = (flags['engine'] ?? []) as readonly EngineName[]
  if (flags['self-test'] === true) return await tryContract({ named, asJson, env })
  if (named.length > 0)
    throw usageError('--engine belongs to --self-test.', 'llm-do doctor --self-test --engine=unshare')
  if (flags['facts'] === true) {
    await writeStdout(json(await observeForDoctor(env)))
    return 0
  }
  const report = await examine(env)
  await writeStdout(asJson ? json(report) : reportText(report))
  return report.ok ? 0 : FOUND_PROBLEMS
})

interface Contract {
  readonly named: readonly EngineName[]
  readonly asJson: boolean
  readonly env: Environment
}

async function tryContract({ named, asJson, env }: Contract): Promise<number> {
  const facts = await observeForDoctor(env)
  const { engines, unusable } = namespaceOffers(facts)
  if (unusable !== undefined)
    throw new SandboxError('NO_BACKEND', `no row can be tried: ${unusable.why}`, { hint: unusable.fix })
  const missing = named.find((engine) => !engines.includes(engine))
  if (missing !== undefined)
    throw new SandboxError('NO_BACKEND', `engine ${missing} cannot be used here`, { hint: 'llm-do doctor' })
  const stopped = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const) process.on(signal, () => stopped.abort())
  const results = await selfTest({
    signal: stopped.signal,
    env,
    rows: CONTRACT,
    engines: named.length > 0 ? named : engines,
    landlockAbi: facts.landlockAbi,
    ...(asJson ? {} : { onResult: (result: RowResult) => void writeStdout(`${rowText(result)}\n`) }),
  })
  await writeStdout(
    asJson ? json({ schema: 1, uid: facts.uid, kernel: facts.kernel, rows: results }) : `${summaryText(results)}\n`,
  )
  return contractStatus(results, stopped.signal.aborted)
}

/** Exit status of `--self-test`: what was stopped says nothing about the rows that were not tried. */
export function contractStatus(results: readonly Pick<RowResult, 'verdict'>[], isStopped: boolean): number {
  if (isStopped) return CANCELLED
  return results.some(({ verdict }) => verdict.kind === 'broken') ? FOUND_PROBLEMS : 0
}
