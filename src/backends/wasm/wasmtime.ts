/**
 * The command line of wasmtime, for `runtime: wasmtime`. Pure.
 *
 * It is only ever the command of a namespace sandbox: its command line knows no read-only directories (wasmtime issues 5974
 * and 9608), so the mounts around it hold the zones and the protected paths, and the native chain holds the deadline.
 * What it cannot tell stays untold: it exits with the module's own code, with 134 for a trap and with 1 for a module that it
 * cannot load, and a module may use those two numbers itself (run.rs of wasmtime-cli 43).
 */
import { SandboxError } from '../run-kit.ts'
import type { WasmPreopen } from './program.ts'

/** The value of `runtime` that chooses it. */
export const WASMTIME = 'wasmtime'

/** 128 + SIGABRT: how wasmtime exits when the module has trapped. */
const TRAP_STATUS = 134

export interface WasmtimeInputs {
  /** Path of the module, as everything else here inside the sandbox. */
  readonly module: string
  /** The command; its first word is what the module sees as its name. */
  readonly command: readonly string[]
  readonly preopens: readonly WasmPreopen[]
  /** Names of the command's variables; the values are in wasmtime's own environment, because an argv can be read by others. */
  readonly names: readonly string[]
  /** Bytes of linear memory; undefined = all that it can address. */
  readonly memory: number | undefined
}

/** @throws SandboxError for a directory or a variable that wasmtime cannot be given */
export function wasmtimeWords({ module, command, preopens, names, memory }: WasmtimeInputs): readonly string[] {
  refuseSteering(names)
  return [
    'run',
    // One thread, as with node: nothing is compiled in parallel, and modules get no threads unless they are asked for.
    ...['-C', 'parallel-compilation=n', '-C', 'cache=n'],
    ...(memory === undefined ? [] : ['-W', `max-memory-size=${memory}`]),
    ...preopens.map(directoryWord),
    ...names.map((name) => `--env=${name}`),
    `--argv0=${command[0] ?? ''}`,
    module,
    ...command.slice(1),
  ]
}

function directoryWord({ host, guest }: WasmPreopen): string {
  if (!`${host}${guest}`.includes('::')) return `--dir=${host}::${guest}`
  throw new SandboxError('ZONE_INVALID', `${host}: wasmtime cannot be given a directory with "::" in its path`, {
    hint: 'give the zone another target, or leave out --runtime wasmtime',
  })
}

/** Variables that the loader, the standard library or wasmtime would read. */
const STEERING = /^(LD_|GLIBC_|MALLOC_|RUST_|RAYON_|TOKIO_|WASMTIME_)/

function refuseSteering(names: readonly string[]): void {
  const steering = names.filter((name) => STEERING.test(name))
  if (steering.length === 0) return
  throw new SandboxError('POLICY_INVALID', `env: ${steering.join(', ')}: wasmtime reads this variable itself`, {
    hint: 'leave it out of env, or leave out --runtime wasmtime',
  })
}

/** Warns of an exit status that can mean two things. */
export function wasmtimeWarnings(exitCode: number | null): readonly string[] {
  if (exitCode !== TRAP_STATUS) return []
  return [`wasmtime exits with ${TRAP_STATUS} for a trap, and a module may do so itself: which it was is not known`]
}
