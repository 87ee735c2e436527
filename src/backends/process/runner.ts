/** The part of the process backend that only a run needs. */
import type { BackendRun, Runner } from '../backend.ts'
import { buildProcess, type ProcessInputs } from './build.ts'
import { superviseProcess } from './run.ts'

const inputsOf = ({ env, run }: BackendRun): ProcessInputs => ({
  ...run,
  allowUnsandboxed: env['LLM_DO_ALLOW_UNSANDBOXED'] === '1',
})

export const runner: Runner = {
  build: (planned) => buildProcess(planned.plan, inputsOf(planned)),
  run: (started) => superviseProcess({ ...started, run: inputsOf(started) }),
}
