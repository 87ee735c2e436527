/** The common part of several backends' offers. Data. */
import type { Probe } from '../host/facts.ts'
import type { Lack, Offers } from '../plan/offers.ts'

export const NOT_WASI: Lack = { why: 'only the wasm backend runs WASI commands', fix: '--backend wasm' }
export const NO_RATES: Lack = {
  why: 'rates of disks are held by the cgroup of a namespace sandbox only',
  fix: '--backend namespace, or --best-effort',
}

export const NO_LAYERS: Lack = {
  why: 'copy-on-write zones are mounts that only a namespace sandbox makes',
  fix: '--backend namespace, or --ro or --rw for the directory',
}

export const NO_OBSERVER: Lack = {
  why: 'only the system calls of a namespace sandbox are watched',
  fix: '--backend namespace, or leave out --explain',
}

/** Walls that the kernel makes around a command in a new root. */
export const WALLS = {
  'empty-root': 'kernel',
  zones: 'kernel',
  'pid-namespace': 'kernel',
  'ipc-namespace': 'kernel',
  'user-namespace': 'kernel',
  seccomp: 'kernel',
} as const

/** Limits that our own process holds, whatever runs the command. */
export const OWN_LIMITS = { deadline: 'timer', 'output-limit': 'runner' } as const

export function nothing(unusable: Lack): Offers {
  return { gives: {}, lacks: {}, unusable, engines: [] }
}

export const unusable = ({ message, fix = 'make native' }: Extract<Probe, { ok: false }>): Lack => ({
  why: `the native programs are not usable: ${message}`,
  fix,
})
