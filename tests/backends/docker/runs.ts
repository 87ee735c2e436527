/** Runs in containers of a daemon of the tests' own, as the supervisor makes them. */
import { statSync } from 'node:fs'
import { chown } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll } from 'vitest'
import type { DockerRunInputs } from '../../../src/backends/docker/command-environment.ts'
import { dockerInputs } from '../../../src/backends/docker/inputs.ts'
import { observeDocker } from '../../../src/backends/docker/observe.ts'
import { superviseDocker } from '../../../src/backends/docker/run.ts'
import type { Outcome } from '../../../src/backends/outcome.ts'
import type { DockerFact } from '../../../src/host/facts.ts'
import type { Plan, PlannedZone } from '../../../src/plan/plan.ts'
import { inputOf } from '../../../src/run/callbacks.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { BUSYBOX_IMAGE, type TestDocker } from '../../support/docker.ts'
import { dockerPlan, plannedZone, runInputs } from '../plans.ts'

export const text = ({ head, tail }: Outcome['stdout']): string => Buffer.concat([head, tail]).toString('utf8')
/** An ordinary user who owns the zones; these tests run as root. */
export const OWNER = 1000

export async function ownedDirectory(): Promise<string> {
  const path = await temporaryDirectory({ mode: 0o755 })
  await chown(path, OWNER, OWNER)
  return path
}

/** A zone as planning would have seen it. */
export function observedZone(zone: Parameters<typeof plannedZone>[0]): PlannedZone {
  const { dev = 0, ino = 0 } = statSync(zone.source, { throwIfNoEntry: false }) ?? {}
  return plannedZone({ ...zone, dev, ino })
}

export interface Engine {
  readonly docker: TestDocker
  readonly fact: DockerFact
  /** Where runs leave their records and sockets. */
  readonly runsDirectory: string
}

export const runIds = (function* () {
  for (let index = 1; ; index += 1) yield `t${process.pid}x${index}`
})()

export interface RunRequest {
  readonly command: readonly string[]
  readonly plan?: Partial<Plan>
  readonly run?: Partial<DockerRunInputs>
  readonly stdin?: 'ignore' | Uint8Array
  readonly signal?: AbortSignal
  readonly outputCap?: number
}

export function runIn(
  { docker, fact, runsDirectory }: Engine,
  { command, plan, run, stdin = 'ignore', signal, outputCap }: RunRequest,
): Promise<Outcome> {
  return superviseDocker({
    plan: dockerPlan({ image: BUSYBOX_IMAGE, workdir: '/', ...plan }),
    run: runInputs({
      runId: runIds.next().value as string,
      docker: dockerInputs(fact, docker.env),
      runsDirectory,
      command,
      ...run,
    }),
    stdio: { mode: 'capture', stdin: inputOf(stdin), outputCap: outputCap ?? 1 << 20 },
    signal,
  })
}

export const containers = async ({ docker }: Engine): Promise<string> => docker.client('ps', '--all', '--quiet')

/** @param start of oncePerFile: what a test leaves is in the way of the next */
export function engine(start: () => Promise<TestDocker>): () => Engine {
  const state: { engine?: Engine } = {}
  beforeAll(async () => {
    const docker = await start()
    const fact = await observeDocker({ env: { ...docker.env, LLM_DO_DOCKER: docker.program }, notBelow: [] })
    state.engine = { docker, fact: fact as DockerFact, runsDirectory: join(docker.root, 'llm-do/runs') }
  })
  return () => state.engine as Engine
}
