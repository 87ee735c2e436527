/**
 * Probes an engine by doing: the whole chain around nothing but our own init, so the answer holds for real runs.
 * Edge: processes.
 */

import type { NetworkWay, Probe } from '../../host/facts.ts'
import type { Plan } from '../../plan/plan.ts'
import type { EngineName } from '../../policy/values.ts'
import { buildNamespace } from './build.ts'
import { superviseNamespace } from './run.ts'

export interface EngineProbe {
  readonly engine: EngineName
  /** Its path, for the engine that is a program. */
  readonly bwrap: string | undefined
  readonly nativeDirectory: string
  readonly uid: number
  readonly arch: 'x64' | 'arm64'
  readonly runId: string
  /** A network that is restricted by name, in this way; absent = no network. */
  readonly network?: NetworkWay
}

/** Only an allowed name makes a connection possible. This one exists nowhere (RFC 2606), and nothing looks it up. */
const ONE_NAME = { mode: 'restricted', allow: ['probe.invalid'], deny: [] } as const

/** A sandbox in which nothing is but what the chain itself brings; init answers the question by existing. */
function emptyPlan({ engine, uid, arch, network }: EngineProbe): Plan {
  return {
    schema: 1,
    hash: '',
    profile: 'probe',
    backend: 'namespace',
    engine,
    dockerReuse: 'off',
    needs: [],
    zones: [],
    scratch: [],
    system: [],
    network: network === undefined ? { mode: 'none', allow: [], deny: [] } : { ...ONE_NAME, by: network },
    limits: { timeoutMs: 10_000 },
    env: [],
    workdir: '/',
    seccomp: { profile: 'off', arch, filter: '' },
    landlockAbi: 0,
    uid: 1000,
    gid: 1000,
    identity: uid === 0 ? 'fresh' : 'self',
    hostname: 'sandbox',
    tty: false,
    warnings: [],
  }
}

export async function probeEngine(probe: EngineProbe): Promise<Probe> {
  const launch = buildNamespace(emptyPlan(probe), {
    runId: probe.runId,
    command: ['/.init', '--probe'],
    commandEnv: {},
    ...(probe.bwrap === undefined ? {} : { enginePath: probe.bwrap }),
    nativeDirectory: probe.nativeDirectory,
    runsDirectory: '',
    stdin: 'nothing',
  })
  const outcome = await superviseNamespace({ launch, stdio: { mode: 'capture', stdin: 'ignore', outputCap: 4096 } })
  if (outcome.reason === 'exit' && outcome.exitCode === 0) return { ok: true }
  const { step, errno, detail } = outcome.failure ?? { step: outcome.reason, errno: '', detail: 'it did not finish' }
  return { ok: false, step, errno, message: detail === '' ? `${step}: ${errno}` : detail }
}
