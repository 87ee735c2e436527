/** The part of the wasm backend that only a run needs. */
import { type BackendRun, enginePathOf, type Runner } from '../run-kit.ts'
import { buildWasm, type WasmRunInputs } from './build.ts'
import { wasmInputs } from './inputs.ts'
import { superviseWasm } from './run.ts'

const inputsOf = ({ plan, facts, env, cwd, run }: BackendRun): WasmRunInputs => ({
  ...run,
  ...enginePathOf(facts, plan),
  wasm: wasmInputs({ env, cwd, wasmtime: facts.wasmtime?.path }),
})

export const runner: Runner = {
  build: (planned) => buildWasm(planned.plan, inputsOf(planned)),
  run: (started) => superviseWasm({ ...started, run: inputsOf(started) }),
}
