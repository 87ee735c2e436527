/**
 * Checks of this machine: the same facts and offers that the plan chooses by, and one real run of the default profile.
 * Edge: the machine (by run/observe.ts), processes (by exec).
 */
import { tmpdir } from 'node:os'
import type { Part } from '../backends/backend.ts'
import { BACKENDS, backendNamed } from '../backends/index.ts'
import { SandboxError } from '../error.ts'
import type { HostFacts } from '../host/facts.ts'
import { secretDirectory } from '../host/own-directory.ts'
import { takeSecret } from '../host/secret.ts'
import { statusLine } from '../os/proc-status.ts'
import type { BackendName, EngineName } from '../policy/values.ts'
import type { Environment } from '../run/caller.ts'
import { exec } from '../run/exec.ts'
import { observeMachine } from '../run/observe.ts'
import { type ExecOptions, prepare } from '../run/plan-run.ts'
import { type BackendReport, describeBackends, describeParts, keyPart } from './describe.ts'

/** The default profile, planned and where the walls are our own also run. */
export type Trial =
  | {
      readonly ok: true
      readonly backend: BackendName
      readonly engine?: EngineName
      /** A seccomp filter was on in it; null when it was not run. */
      readonly filtered: boolean | null
      readonly setupMs: number | null
    }
  | { readonly ok: false; readonly code: string; readonly message: string; readonly hint: string }

export interface DoctorReport {
  readonly schema: 1
  /** At least one backend can run the default profile. */
  readonly ok: boolean
  readonly trial: Trial
  readonly parts: readonly Part[]
  readonly backends: readonly BackendReport[]
}

/**
 * Everything observed of the machine, for tests/hosts and for bug reports; holds no path of the caller.
 * @param env its PATH leads only to programs that may be started
 */
export async function observeForDoctor(env: Environment): Promise<HostFacts> {
  const machine = await observeMachine({
    also: BACKENDS.map(({ name }) => name),
    policy: { engine: 'all' },
    env,
    notBelow: [],
  })
  return { ...machine, paths: {} }
}

/** Never throws for a machine that can run nothing: that is what it reports. */
export async function doctor(env: Environment): Promise<DoctorReport> {
  // A daemon that is asked takes longer than a run.
  const [facts, trial] = await Promise.all([observeForDoctor(env), tryDefault(env)])
  const parts = [...(await describeParts(facts)), ...(facts.platform === 'linux' ? [sealKeyPart(env, facts.uid)] : [])]
  return { schema: 1, ok: trial.ok, trial, parts, backends: describeBackends(facts) }
}

/** As a run does, so it is made if it can be. */
function sealKeyPart(env: Environment, uid: number): Part {
  const isUsable = takeSecret({ env, uid }) !== undefined
  return keyPart({ uid, directory: secretDirectory(env, uid), isUsable })
}

async function tryDefault(env: Environment): Promise<Trial> {
  const options: ExecOptions = {
    command: ['/bin/cat', '/proc/self/status'],
    mode: 'capture',
    cwd: tmpdir(),
    env,
    layers: [{ layer: 'flag', source: 'doctor', directory: tmpdir(), values: { workspace: 'none' } }],
  }
  try {
    const { backend, engine } = (await prepare(options)).plan
    const chosen = { ok: true, backend, ...(engine === undefined ? {} : { engine }) } as const
    // The program that is run is the host's; an image need not be there.
    if (backendNamed(backend).traits.root !== 'assembled') return { ...chosen, filtered: null, setupMs: null }
    const { error, stdout, setupMs } = await exec(options)
    if (error !== undefined) return { ok: false, ...error }
    return { ...chosen, filtered: statusLine(stdout, 'Seccomp') === '2', setupMs }
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error
    return { ok: false, code: error.code, message: error.message, hint: error.hint }
  }
}
