/** The line of the doctor about what runs WASI modules. Pure. */
import type { HostFacts, Part } from '../run-kit.ts'

export function describeWasm({ engines, wasmtime }: HostFacts): readonly Part[] {
  const inside = engines.bwrap.ok || engines.unshare.ok
  const other = wasmtime === undefined ? '' : `; ${wasmtime.path} ${wasmtime.version} with --runtime wasmtime`
  const detail = `node's own WASI${inside ? ', inside the namespace sandbox' : ''}${other}`
  return [{ name: 'wasm', state: 'ok', detail, fix: '' }]
}
