/** Shared by the worker tests: texts as files, policies of an operator, projects on disk. */
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { SandboxError } from '../../src/error.ts'
import type { SandboxInput } from '../../src/policy/keys/index.ts'
import type { PolicyLayer } from '../../src/policy/layer.ts'
import { flagLayer, type GivenOptions } from '../../src/policy/option-layer.ts'
import type { Policy } from '../../src/policy/policy.ts'
import { readWorker, readWorkshop } from '../../src/worker/read.ts'
import type { SandboxRequest, Worker, Workshop } from '../../src/worker/worker.ts'
import { mergeLayers } from '../policy/layers.ts'
import { temporaryDirectory } from '../support/directory.ts'

export const HOME = '/home/ann'
const around = (file: string, text: string) => ({ file, directory: '/project', home: HOME, text })

export function worker(yaml: string, file = 'w.worker'): Worker {
  return readWorker(around(file, `---\n${yaml}\n---\nDo it.\n`))
}
export function workshop(yaml: string): Workshop {
  return readWorkshop(around('shop.yaml', yaml))
}
/** The `sandbox` of a worker that has little else. */
export function sandbox(yaml: string): SandboxRequest {
  const request = worker(`name: w\nsandbox: ${yaml}`).sandbox
  if (request === undefined) throw new Error('no sandbox was read')
  return request
}

/** Message and problems, as a person sees them. */
export function errorText(error: SandboxError): string {
  return [error.message, ...error.problems].join('\n')
}

export async function refusedLater(act: Promise<unknown>): Promise<SandboxError> {
  const error = await act.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (error instanceof SandboxError) return error
  throw new Error('it was let through, or broke', { cause: error })
}

/** The policy of an operator who says these flags, over a profile that was not named. */
export function operator(given: GivenOptions = {}, { cwd = '/project', profile = {} as SandboxInput } = {}): Policy {
  const base: PolicyLayer = { layer: 'profile', source: 'default.yaml', directory: cwd, values: profile }
  return mergeLayers([base, flagLayer(given, cwd)], { profile: 'default', home: HOME })
}

/** A project on disk, gone with the test; keys are paths. */
export async function project(files: Readonly<Record<string, string>>): Promise<string> {
  const cwd = await temporaryDirectory()
  for (const [file, text] of Object.entries(files)) {
    await mkdir(path.dirname(path.join(cwd, file)), { recursive: true })
    await writeFile(path.join(cwd, file), text)
  }
  return cwd
}
