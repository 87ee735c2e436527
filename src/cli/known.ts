/**
 * `llm-do exec --json` for a plan that is known: no option parser, no schema and no YAML is loaded. What the result says is
 * the same; a run whose end needs more words than the plan has is explained by exec.ts, which makes the plan again.
 *
 * Edge: stdout, signals, process.env, the working directory.
 */
import { launchOf } from '../backend/namespace.ts'
import { cacheDirectory } from '../host/cache.ts'
import { commandBySplit, invocationForJson } from '../launch-cache/key.ts'
import { type Recalled, recallLaunch } from '../launch-cache/recall.ts'
import { launchCacheDirectory } from '../launch-cache/store.ts'
import { helpersDirectory, packageRoot, packageVersion } from '../native.ts'
import { classify } from '../report/classify.ts'
import { exitStatus } from '../report/exit-status.ts'
import { JSON_FORMS, printJson } from '../report/json.ts'
import { superviseNamespace } from '../supervisor/namespace.ts'
import type { Outcome } from '../supervisor/outcome.ts'
import type { Words } from './argv.ts'
import { say } from './output.ts'

const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** @returns the exit status, or undefined when nothing was run: the plan is not known, or JSON was not asked for */
export async function runKnown(words: Words): Promise<number | undefined> {
  const known = words.bytes === undefined ? find(words.text) : undefined
  const form = JSON_FORMS.find((name) => name === known?.told.form)
  if (known === undefined || form === undefined) return undefined
  const command = commandBySplit(words.text)
  const outcome = await supervise(known, command)
  const result = saysAll(outcome, command)
    ? classify(known.told.plan, outcome, command)
    : await (await import('./exec.ts')).explainKnown(words, outcome)
  await say(printJson(result, form))
  return exitStatus(result)
}

function find(words: readonly string[]): Recalled | undefined {
  const invocation = invocationForJson(words)
  const cache = cacheDirectory(process.env)
  if (invocation === undefined || cache === undefined) return undefined
  const caller = { version: packageVersion(), root: packageRoot(), cwd: process.cwd(), env: process.env }
  return recallLaunch({ directory: launchCacheDirectory(cache), invocation, caller })
}

async function supervise({ bytes, env, told }: Recalled, command: readonly string[]): Promise<Outcome> {
  const controller = new AbortController()
  const stop = (signal: NodeJS.Signals) => controller.abort(signal)
  for (const signal of STOP_SIGNALS) process.on(signal, stop)
  const stdio = { mode: 'capture', stdin: 'inherit', outputCap: told.plan.limits.output ?? null } as const
  const launch = launchOf({ file: `${helpersDirectory()}/launch`, bytes, env, command, tty: told.plan.tty })
  return await superviseNamespace({ launch, stdio, signal: controller.signal }).finally(() => {
    for (const signal of STOP_SIGNALS) process.off(signal, stop)
  })
}

/** Ended by itself, within every limit, and with nothing for which a hint could be given. */
function saysAll({ cause, exitCode, events, stdout, stderr, warnings }: Outcome, command: readonly string[]): boolean {
  const isCalm = (events?.oomKill ?? 0) === 0 && (events?.pidsMax ?? 0) === 0 && warnings.length === 0
  const isWhole = [stdout, stderr].every(({ head, tail, bytes }) => head.length + tail.length === bytes)
  const mayWantHint = exitCode !== 0 && command.slice(1).some((word) => word.startsWith('/'))
  return cause === 'exit' && exitCode !== null && isCalm && isWhole && !mayWantHint
}
