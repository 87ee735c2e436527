/** The native chain without the runner around it: planned once, launched as often as a test likes. */
import { randomBytes } from 'node:crypto'
import type { NativeLaunch } from '../../src/backends/launch.ts'
import { buildNamespace } from '../../src/backends/namespace/build.ts'
import { runLaunch } from '../../src/backends/namespace/launch-process.ts'
import { superviseNamespace } from '../../src/backends/namespace/run.ts'
import type { Outcome } from '../../src/backends/outcome.ts'
import { nativeDirectory } from '../../src/os/native-programs.ts'
import type { SandboxInput } from '../../src/policy/keys/index.ts'
import { prepare } from '../../src/run/plan-run.ts'
import { type Engine, PROBE, type TestSite } from './chain.ts'

export interface Planned {
  /** The exact process of one more run. */
  readonly launch: () => NativeLaunch
  readonly run: () => Promise<{ readonly outcome: Outcome; readonly stdout: string }>
}

export interface PlanInputs {
  readonly site: TestSite
  readonly engine: Engine
  readonly command: readonly string[]
  readonly mode?: 'ro' | 'rw'
  readonly values?: SandboxInput
  /** In the place of the plan's own system call filter, hexadecimal: what a launch file written by hand could have. */
  readonly filter?: string
  /** Without Landlock, as on a kernel that has none. */
  readonly withoutLandlock?: boolean
  /** Where records of the runs are; nowhere by default. */
  readonly runsDirectory?: string
}

const CAPTURE = { mode: 'capture', stdin: 'ignore', outputCap: null } as const

/** @param around a program and its words, which starts the launcher in its turn */
export const supervised = (launch: NativeLaunch, around: readonly string[] = []): Promise<Outcome> => {
  const [file = '', ...argv] = [...around, launch.file, ...launch.argv]
  return superviseNamespace({ launch: { ...launch, file, argv }, stdio: CAPTURE })
}

/** @returns its pid, 0 until it was started, and its end */
export function begin(launch: NativeLaunch) {
  const started = { pid: 0 }
  const onStart = (pid: number) => Object.assign(started, { pid })
  const end = runLaunch({ launch, stdio: CAPTURE, isEarly: false, onStart, stop: async () => undefined })
  return { started, end }
}

export async function planOnce({
  site,
  engine,
  command,
  mode = 'rw',
  values = {},
  filter,
  withoutLandlock = false,
  runsDirectory = '',
}: PlanInputs): Promise<Planned> {
  const zones: SandboxInput['zones'] = [
    { name: 'probe', mode: 'ro', hostPath: site.probe, target: PROBE },
    { name: 'zone', mode, hostPath: site.zone, target: '/zone' },
  ]
  const {
    plan: planned,
    facts,
    commandEnv,
  } = await prepare({
    command,
    mode: 'capture',
    cwd: site.base,
    layers: [
      {
        layer: 'flag',
        source: 'test',
        directory: site.base,
        values: { engine, toolchains: 'off', workspace: 'none', workdir: '/tmp', zones, ...values },
      },
    ],
  })
  const plan = {
    ...planned,
    ...(filter !== undefined && { seccomp: { ...planned.seccomp, filter } }),
    ...(withoutLandlock && { landlockAbi: 0 }),
  }
  const enginePath = engine === 'bwrap' ? facts.bwrap?.path : undefined
  const launch = (): NativeLaunch =>
    buildNamespace(plan, {
      runId: randomBytes(10).toString('hex'),
      command,
      commandEnv,
      ...(enginePath === undefined ? {} : { enginePath }),
      nativeDirectory: nativeDirectory(),
      runsDirectory,
      stdin: 'nothing',
    })
  const run = async () => {
    const outcome = await supervised(launch())
    return { outcome, stdout: Buffer.concat([outcome.stdout.head, outcome.stdout.tail]).toString() }
  }
  return { launch, run }
}
