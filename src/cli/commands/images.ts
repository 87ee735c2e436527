/**
 * `llm-do images [--pull] [--json]`: the image of each runtime, and whether the daemon has it.
 */
import { dockerInputs } from '../../backends/docker/inputs.ts'
import { observeDocker } from '../../backends/docker/observe.ts'
import { dockerObstacle } from '../../backends/docker/offers.ts'
import {
  type ImageState,
  listImages,
  type PullResult,
  printImages,
  pullImages,
} from '../../backends/docker/pull-images.ts'
import { SandboxError } from '../../error.ts'
import type { DockerFact } from '../../host/facts.ts'
import { neutralise } from '../../report/text.ts'
import type { Environment } from '../call.ts'
import { untrustedDirectories } from '../current-directory.ts'
import { writeStderr, writeStdout } from '../stdio.ts'
import { FOUND_PROBLEMS, subcommand } from '../subcommand.ts'

/** @throws SandboxError NO_BACKEND when the client is missing or its daemon does not answer */
async function usableDocker(env: Environment): Promise<DockerFact> {
  const docker = await observeDocker({ env, notBelow: untrustedDirectories() })
  const obstacle = dockerObstacle({ ...(docker && { docker }) })
  if (docker !== undefined && obstacle === undefined) return docker
  const { why = '', fix = '' } = obstacle ?? {}
  throw new SandboxError('NO_BACKEND', `docker cannot be used: ${why}`, { hint: fix })
}

function failureLine({ image, message }: PullResult): string {
  return `llm-do: ${image}: ${neutralise(message) || 'cannot be fetched'}`
}

const printStates = (images: readonly ImageState[], isJson: boolean): string =>
  isJson ? `${JSON.stringify(images)}\n` : printImages(images)

/** An image that is missing is an answer; one that cannot be fetched is a problem. */
export const images = subcommand('images', async ({ flags }, { env }) => {
  const docker = dockerInputs(await usableDocker(env), env)
  const before = await listImages(docker)
  const failed = flags['pull'] ? (await pullImages(docker, before)).filter(({ ok }) => !ok) : []
  await writeStdout(printStates(flags['pull'] ? await listImages(docker) : before, flags['json'] === true))
  await writeStderr(failed.map(failureLine))
  return failed.length === 0 ? 0 : FOUND_PROBLEMS
})
