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
import { readGrant } from '../../run/plan-run.ts'
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

/** What the operator grants here, as exec would. */
async function operatorOf({ cwd, env, given }: WorkersRequest) {
  const all = { ...environmentLayers(env, cwd).request, ...given }
  const profile = typeof all['profile'] === 'string' ? all['profile'] : undefined
  const { grant, request } = await readGrant({
    command: ['true'], // only a run has one; nothing of it is policy
    layers: [flagLayer(given, cwd)],
    ...(profile !== undefined && { profile }),
    cwd,
    env,
    mode: 'inherit',
  })
  const workshop = typeof all['workshop'] === 'string' ? all['workshop'] : undefined
  return { grant, home: request.home, isProfileChosen: profile !== undefined, workshop }
}

async function actionReport(action: string | undefined, request: WorkersRequest): Promise<Report<unknown>> {
  const { cwd, env, operand } = request
  const shippedDirectory = shippedWorkers()
  if (action === 'list') return await listWorkers({ cwd, home: homeOf(env), shippedDirectory })
  const operator = await operatorOf(request)
  return action === 'show'
    ? await showWorker({ ...operator, cwd, worker: operand ?? '', shippedDirectory })
    : await checkWorkers({ ...operator, tree: resolve(cwd, operand ?? '.') })
}

export const workers = subcommand('workers', async ({ action, flags, operands: [operand] }, call) => {
  const { json, ...given } = flags
  const { data, lines, ok } = await actionReport(action, { cwd: currentDirectory(call), env: call.env, given, operand })
  await writeStdout(json === true ? `${JSON.stringify(data)}\n` : lines.map((line) => `${line}\n`).join(''))
  return ok ? 0 : FOUND_PROBLEMS
})
