/**
 * `llm-do workers list | show NAME | check [TREE]`: what workers there are, what one of them may do, what is wrong with their files.
 * `show` and `check` take the options of exec that are policy: what the operator grants decides about both.
 *
 * Edge: the working directory.
 */
import { resolve } from 'node:path'
import { environmentLayers } from '../../policy/environment.ts'
import { flagLayer, type GivenOptions } from '../../policy/option-layer.ts'
import { homeOf } from '../../run/caller.ts'
import { type ExecOptions, prepare, readGrant } from '../../run/plan-run.ts'
import { checkWorkers, listWorkers, type Report, showWorker } from '../../worker/list-show-check.ts'
import type { Environment } from '../call.ts'
import { currentDirectory } from '../current-directory.ts'
import { writeStdout } from '../stdio.ts'
import { FOUND_PROBLEMS, subcommand } from '../subcommand.ts'
import { shippedWorkers } from '../under-worker.ts'

interface WorkersRequest {
  readonly cwd: string
  readonly env: Environment
  /** Flags only; the variables of the environment are below them. */
  readonly given: GivenOptions
  readonly operand: string | undefined
}

/** The operator's words, as exec takes them. */
function operatorOf({ cwd, env, given }: WorkersRequest) {
  const { profile, workshop } = { ...environmentLayers(env, cwd).request, ...given }
  const options: ExecOptions = {
    command: ['true'], // only a run has one; nothing of it is policy
    layers: [flagLayer(given, cwd)],
    ...(typeof profile === 'string' && { profile }),
    cwd,
    env,
    mode: 'inherit',
  }
  return { options, isProfileChosen: typeof profile === 'string', ...(typeof workshop === 'string' && { workshop }) }
}

async function check(request: WorkersRequest): Promise<Report<unknown>> {
  const { options, isProfileChosen } = operatorOf(request)
  const { grant, request: caller } = await readGrant(options)
  return await checkWorkers({
    grant,
    home: caller.home,
    isProfileChosen,
    tree: resolve(request.cwd, request.operand ?? '.'),
  })
}

/** The worker, and the plan that `exec --plan` shows for its commands. */
async function show(request: WorkersRequest): Promise<Report<unknown>> {
  const { options, isProfileChosen, workshop } = operatorOf(request)
  const worker = { worker: request.operand ?? '', workshop, isProfileChosen, shippedDirectory: shippedWorkers() }
  const shown: Awaited<ReturnType<typeof showWorker>>[] = []
  const narrow: ExecOptions['narrow'] = async (grant, { cwd, home }) => {
    const report = await showWorker({ ...worker, grant, cwd, home })
    shown.push(report)
    return report.policy
  }
  const { textOfPlan } = await import('./exec.ts')
  const prepared = await prepare({ ...options, narrow })
  const { data, lines } = shown.at(-1) ?? { data: {}, lines: [] }
  const plan = (await textOfPlan(prepared, undefined, ['COMMAND'])).trimEnd().split('\n')
  return { data: { ...data, plan: prepared.plan }, lines: [...lines, ...plan], ok: true }
}

async function actionReport(action: string | undefined, request: WorkersRequest): Promise<Report<unknown>> {
  const { cwd, env } = request
  if (action === 'list') return await listWorkers({ cwd, home: homeOf(env), shippedDirectory: shippedWorkers() })
  return action === 'show' ? await show(request) : await check(request)
}

export const workers = subcommand('workers', async ({ action, flags, operands: [operand] }, call) => {
  const { json, ...given } = flags
  const { data, lines, ok } = await actionReport(action, { cwd: currentDirectory(call), env: call.env, given, operand })
  await writeStdout(json === true ? `${JSON.stringify(data)}\n` : lines.map((line) => `${line}\n`).join(''))
  return ok ? 0 : FOUND_PROBLEMS
})
