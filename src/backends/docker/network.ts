/**
 * The restricted network of a container: a program on the host that holds its helper (native/tools/container-net.c).
 * Edge: processes, pipes.
 *
 *     runner ──end──► container-net ◄──socket shown in the container──► container-init
 *            ◄─lines──      └─ net, the helper that resolves, judges and dials
 */
import {
  type LaunchStatus,
  type NetworkReport,
  networkOf,
  networkRecords,
  type Outcome,
  type Plan,
  promised,
  SandboxError,
  writeLaunchFile,
} from '../run-kit.ts'
import { networkSocketOf, type Reporter } from './build.ts'
import type { DockerInputs } from './command-environment.ts'
import { startLineProgram } from './line-program.ts'

interface ContainerNetwork {
  /** Whether the container may be made. */
  readonly listening: Promise<boolean>
  /** When the container is gone: what the command has reached. */
  readonly end: () => Promise<NetworkReport>
  readonly message: () => string
}

export interface NetworkInputs {
  readonly plan: Pick<Plan, 'network'>
  readonly docker: DockerInputs
  /** Undefined where our init cannot be shown: the container is refused then. */
  readonly reporter: Reporter | undefined
}

/**
 * Serves the network of a container from before it is made until it is gone.
 * @throws SandboxError HELPER_MISSING without the program, SETUP_FAILED when it cannot begin
 */
export async function withNetwork(
  { plan, docker, reporter }: NetworkInputs,
  run: () => Promise<Outcome>,
): Promise<Outcome> {
  if (plan.network.mode !== 'restricted' || reporter === undefined) return run()
  const network = start(plan, { ...(docker.network ?? missing()), socket: networkSocketOf(reporter) })
  try {
    if (!(await network.listening)) throw cannotServe(network.message())
    const outcome = await run()
    return { ...outcome, network: await network.end() }
  } finally {
    await network.end()
  }
}

interface Serving {
  readonly program: string
  readonly helper: string
  readonly socket: string
}

/** The program does not tell what was reached: it was killed. */
const LOST: NetworkReport = { hosts: [], omitted: 0, isLost: true }

type Line =
  | { readonly listening: true }
  | ({ readonly end: true } & Pick<LaunchStatus, 'network' | 'networkOmitted' | 'networkLost'>)

function start({ network }: Pick<Plan, 'network'>, { program, helper, socket }: Serving): ContainerNetwork {
  const received = { report: LOST }
  const [listening, closed] = [promised<boolean>(), promised<void>()]
  const { child, message } = startLineProgram<Line>({
    file: program,
    argv: ['network', helper, socket],
    env: {},
    launchFile: writeLaunchFile(networkRecords(network)),
    onLine: (line) => {
      if ('listening' in line) listening.resolve(true)
      else received.report = networkOf(line).network ?? LOST
    },
    over: () => {
      listening.resolve(false)
      closed.resolve()
    },
  })
  const end = async (): Promise<NetworkReport> => {
    child.stdin.end()
    const wedged = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS)
    await closed.promise
    clearTimeout(wedged)
    return received.report
  }
  return { listening: listening.promise, end, message }
}

/** For the report at the end; a helper that is silent for longer is killed, and its report is lost. */
const PATIENCE_MS = 5_000

function cannotServe(message: string): SandboxError {
  const line = message.trim().split('\n').at(-1) ?? ''
  return new SandboxError('SETUP_FAILED', `the restricted network of the container cannot be served: ${line}`, {
    hint: 'llm-do doctor; or --net none',
  })
}

function missing(): never {
  throw new SandboxError('HELPER_MISSING', 'native program container is missing: nothing would serve the network', {
    hint: 'make native   (or: npm install llm-do-exec), or --net none',
  })
}
