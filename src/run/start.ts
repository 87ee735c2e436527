/**
 * The start of a planned run by the backend that the plan has chosen.
 * Edge: this process as the caller: its environment and stdin; the directories of layers.
 */
import { existsSync, fstatSync } from 'node:fs'
import { join } from 'node:path'
import { isatty } from 'node:tty'
import type { BackendRun, StdinKind } from '../backends/backend.ts'
import type { ChildStdio } from '../backends/child-process.ts'
import { backendNamed } from '../backends/index.ts'
import type { Launch } from '../backends/launch.ts'
import type { Outcome } from '../backends/outcome.ts'
import { hasLayers } from '../cow/layered.ts'
import type { LayerPlace } from '../cow/layers.ts'
import { layerDirectories, layersDirectoryFor } from '../cow/state-directory.ts'
import { runsDirectory } from '../host/own-directory.ts'
import { upstreamAuthorization } from '../network/upstream.ts'
import { orElse } from '../os/look.ts'
import { nativeDirectory } from '../os/native-programs.ts'
import { shellWord } from '../report/hints.ts'
import { inputOf } from './callbacks.ts'
import { terminatedHostsOf } from './credentials.ts'
import type { ExecOptions, Prepared } from './plan-run.ts'
import { newRunId } from './run-id.ts'

/** Runs the plan to its end. */
export async function start(prepared: Prepared): Promise<Outcome> {
  const { plan, options, policy } = prepared
  const { run } = await backendNamed(plan.backend).load()
  const runId = options.serve?.runId ?? newRunId()
  const continued = await layerToContinue(options)
  const directory = continued?.directory ?? layersDirectoryOf(prepared)
  const id = continued?.id ?? runId
  // Launch seals the record of the layer, and only reads the secret.
  if (directory !== undefined)
    (await import('../host/secret.ts')).takeSecret({ env: options.env ?? process.env, uid: prepared.facts.uid })
  const planned = plannedRun(prepared, runId, { directory, continued: continued?.id })
  const answered = answering(prepared, runId)
  const outcome = await run({
    ...planned,
    run: { ...planned.run, ...secretsOf(planned) },
    stdio: stdioOf(prepared),
    signal: options.signal,
    bestEffort: policy.bestEffort,
  }).finally(answered.end)
  const warnings = [...outcome.warnings, ...(await answered.warnings)]
  // A runner that was killed has reported nothing, and may have left changes.
  const isLeft = directory !== undefined && outcome.layer === undefined && existsSync(join(directory, id))
  return { ...outcome, warnings, ...(isLeft && { layer: { directory, id } }) }
}

/** Looked up when the sandbox starts, and in no plan. */
function secretsOf({ plan, env }: Pick<BackendRun, 'plan' | 'env'>): Partial<BackendRun['run']> {
  const terminatedHosts = terminatedHostsOf(plan, env)
  const authorization = plan.network.upstream === undefined ? undefined : upstreamAuthorization(env)
  return {
    ...(terminatedHosts === undefined ? {} : { terminatedHosts }),
    ...(authorization === undefined ? {} : { upstreamAuthorization: authorization }),
  }
}

/** Questions about hosts are answered while the run lives. A failure there refuses hosts, and nothing else. */
function answering({ options, plan }: Prepared, runId: string) {
  const ended = new AbortController()
  const answers = plan.network.grants === 'ask' ? options.answerHosts?.(runId, ended.signal, plan) : undefined
  return {
    end: () => ended.abort(),
    warnings: (answers ?? Promise.resolve()).then(
      () => [],
      (error: unknown) => [`questions about hosts were refused: ${(error as Error).message}`],
    ),
  }
}

/** Looked at beforehand: an apply that was killed is taken back, and a directory that was replaced is refused by its name. */
async function layerToContinue({ cowContinue, env = process.env }: ExecOptions): Promise<LayerPlace | undefined> {
  if (cowContinue === undefined) return undefined
  const { changesOf, findLayer, settleLayer } = await import('../cow/layers.ts')
  const layer = findLayer(cowContinue, env)
  await settleLayer(layer)
  await changesOf(layer)
  return layer
}

/** Where the run's layer is made; undefined without copy-on-write zones. */
export function layersDirectoryOf({ plan, options, facts }: Prepared): string | undefined {
  return layersDirectoryFor({ env: options.env ?? process.env, uid: facts.uid, plan })
}

/** The exact process of a plan, for people: its argv and what it reads. */
export async function printLaunch(prepared: Prepared): Promise<string> {
  const { build, print } = await backendNamed(prepared.plan.backend).load()
  const { env = process.env } = prepared.options
  const [directory] = hasLayers(prepared.plan) ? layerDirectories(env, prepared.facts.uid) : []
  const planned = plannedRun(prepared, 'run', { directory, continued: undefined })
  return `${printWords(build(planned))}${print?.(planned) ?? ''}`
}

function printWords({ file, argv }: Pick<Launch, 'file' | 'argv'>): string {
  return `${[file, ...argv].map(shellWord).join(' ')}\n`
}

interface LayerToUse {
  readonly directory: string | undefined
  readonly continued: string | undefined
}

function plannedRun(
  { plan, facts, request, commandEnv, options }: Prepared,
  runId: string,
  { directory: layersDirectory, continued }: LayerToUse,
): BackendRun {
  const env = options.env ?? process.env
  return {
    plan,
    facts,
    env,
    cwd: request.cwd,
    run: {
      runId,
      command: request.command,
      ...(options.commandBytes === undefined ? {} : { commandBytes: options.commandBytes }),
      commandEnv,
      nativeDirectory: nativeDirectory(),
      runsDirectory: runsDirectory(env, facts.uid),
      callerDirectory: request.cwd,
      ...(layersDirectory === undefined ? {} : { layersDirectory }),
      ...(continued === undefined ? {} : { continued }),
      stdin: stdinKind(options),
      ...(options.serve && { serve: options.serve }),
      ...(keepsErrors(options) && { keepsErrors: true }),
      ...(request.authorities && { authorities: request.authorities.files }),
      ...(options.watchesLooks && { watchesLooks: true }),
    },
  }
}

/** A plan for a reader of JSON captures its streams. */
export const keepsErrors = ({ mode, ending }: ExecOptions): boolean => mode === 'inherit' && ending?.form === undefined

function stdinKind({ stdin = 'ignore' }: ExecOptions): StdinKind {
  if (stdin !== 'inherit') return stdin === 'ignore' ? 'nothing' : 'data'
  if (isatty(0)) return 'terminal'
  // It is closed.
  return orElse('nothing', () => (fstatSync(0).isCharacterDevice() ? 'nothing' : 'data'))
}

/** Bytes of each stream for the result of a run that may last for weeks; its log has more. */
const KEPT_OF_SERVING = 1 << 20

function outputCapOf({ options: { serve }, plan: { limits } }: Prepared): number | null {
  const cap = limits.output ?? null
  return serve === undefined ? cap : Math.min(cap ?? KEPT_OF_SERVING, KEPT_OF_SERVING)
}

function stdioOf(prepared: Prepared): ChildStdio {
  const { options } = prepared
  return {
    mode: options.mode ?? 'capture',
    stdin: inputOf(options.stdin ?? 'ignore'),
    outputCap: outputCapOf(prepared),
    ...(options.signals === undefined ? {} : { signals: options.signals }),
    ...(options.onStdout === undefined ? {} : { onStdout: options.onStdout }),
    ...(options.onStderr === undefined ? {} : { onStderr: options.onStderr }),
  }
}
