/**
 * `llm-do prune`: removes what killed runners left behind: records of runs and what they name, keepers of warm sandboxes, containers.
 *
 * Edge: the clock.
 */

import { poolsDirectory, runsDirectory } from '../../host/own-directory.ts'
import { runPoolProgram } from '../../pool/keeper.ts'
import { pruneTrials } from '../../run/observe.ts'
import type { Environment } from '../call.ts'
import { untrustedDirectories } from '../current-directory.ts'
import { runRunsProgram } from '../run-records.ts'
import { writeStdout } from '../stdio.ts'
import { subcommand } from '../subcommand.ts'

/** Milliseconds; cleaning up does not wait for a daemon that hangs. */
const DAEMON_ANSWER_MS = 2_000

/** Containers of killed runners and of sessions. @returns how many were removed; 0 where no daemon answers */
async function pruneContainers(env: Environment): Promise<number> {
  const { observeDocker } = await import('../../backends/docker/observe.ts')
  const docker = await observeDocker({ env, notBelow: untrustedDirectories(), patienceMs: DAEMON_ANSWER_MS })
  if (docker?.server.ok !== true) return 0
  const [{ dockerInputs }, { sweep }] = await Promise.all([
    import('../../backends/docker/inputs.ts'),
    import('../../backends/docker/prune.ts'),
  ])
  const directory = runsDirectory(env, process.getuid?.() ?? 0)
  return await sweep(dockerInputs(docker, env), {
    now: Date.now(),
    runsDirectory: directory,
    endsSessions: true,
  })
}

/** Removes leftovers of killed keepers of warm sandboxes. @returns how many there were */
function prunePools(env: Environment): number {
  return Number(runPoolProgram('prune', poolsDirectory(env, process.getuid?.() ?? 0)))
}

/** A layer is locked a moment after it was made. */
const LOCKED_MS = 60_000

/** Removes layers without a decision, and those of killed runners. Layers in use stay. @returns how many were removed */
async function pruneLayers(env: Environment): Promise<number> {
  const { discardLayer, listLayers, unusedPlaces } = await import('../../cow/layers.ts')
  const old = listLayers(env).filter(({ record: { sinceMs, keepMs } }) => Date.now() - sinceMs > keepMs)
  const removals = [
    ...old.map((layer) => discardLayer(layer)),
    ...unusedPlaces(env, Date.now() - LOCKED_MS).map((place) => discardLayer(place, true)),
  ]
  return (await Promise.allSettled(removals)).filter(({ status }) => status === 'fulfilled').length
}

/** Prints how many dead runs and keepers were cleaned up after. */
export const prune = subcommand('prune', async (_, { env }) => {
  // Without the program (macOS, Windows) there are no records either.
  const isLinux = process.platform === 'linux'
  const records = isLinux ? Number((await runRunsProgram(env, 'prune')).stdout.trim()) : 0
  const pools = isLinux ? prunePools(env) : 0
  if (isLinux) await pruneTrials(env)
  const layers = isLinux ? await pruneLayers(env) : 0
  await writeStdout(`${records + pools + layers + (await pruneContainers(env))} removed\n`)
  return 0
})
