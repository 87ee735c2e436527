/** The part of the docker backend that only a run needs. */
import { type BackendRun, type Runner, SandboxError } from '../run-kit.ts'
import { buildCreate } from './build.ts'
import type { DockerRunInputs } from './command-environment.ts'
import { dockerInputs } from './inputs.ts'
import { superviseDocker } from './run.ts'

function inputsOf({ facts, env, run }: BackendRun): DockerRunInputs {
  if (facts.docker !== undefined) return { ...run, docker: dockerInputs(facts.docker, env) }
  throw new SandboxError('INTERNAL', 'docker: the plan was made without a look at the docker client')
}

export const runner: Runner = {
  build: (planned) => buildCreate(planned.plan, inputsOf(planned)),
  run: (started) => superviseDocker({ ...started, run: inputsOf(started) }),
}
