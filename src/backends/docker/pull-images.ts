/**
 * Lists the default images that exist locally, and fetches the rest: the only place that ever pulls.
 * Edge: processes.
 */
import { execa } from 'execa'
import { runClient } from './client.ts'
import type { DockerInputs } from './command-environment.ts'
import { RUNTIMES } from './images.ts'

export interface ImageState {
  readonly runtime: string
  readonly image: string
  readonly present: boolean
}

/** The default images, each with whether the daemon has it. */
export async function listImages(docker: DockerInputs): Promise<readonly ImageState[]> {
  return Promise.all(
    RUNTIMES.map(async ({ name, image }) => {
      const { ok } = await runClient(docker, ['image', 'inspect', '--format', '{{.Id}}', image])
      return { runtime: name, image, present: ok }
    }),
  )
}

export interface PullResult {
  readonly image: string
  readonly ok: boolean
  /** Last words of the client when it failed. */
  readonly message: string
}

/** Fetches those that are missing, one after the other, with the client's progress on our stderr. */
export async function pullImages(docker: DockerInputs, images: readonly ImageState[]): Promise<readonly PullResult[]> {
  const results: PullResult[] = []
  for (const { image } of images.filter(({ present }) => !present)) results.push(await pull(docker, image))
  return results
}

async function pull({ path, environment }: DockerInputs, image: string): Promise<PullResult> {
  const { failed, stderr } = await execa(path, ['pull', image], {
    env: environment,
    extendEnv: false,
    reject: false,
    stdin: 'ignore',
    // stdout belongs to the list that we print.
    stdout: ['pipe', process.stderr],
    stderr: ['pipe', 'inherit'],
  })
  return { image, ok: !failed, message: failed ? (stderr.trim().split('\n').at(-1) ?? '') : '' }
}

/** A table for people, one line an image. Pure. */
export function printImages(images: readonly ImageState[]): string {
  return images
    .map(({ runtime, image, present }) => `${runtime.padEnd(8)}${image.padEnd(44)}${present ? 'here' : 'missing'}\n`)
    .join('')
}
