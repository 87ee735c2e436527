/** What runs WASI programs here. Made by the edge wasm-inputs.ts. */
export interface WasmInputs {
  readonly node: string
}
