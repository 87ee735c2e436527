/** Runs one container for ever, to be killed: argv holds plan, facts and environment as JSON. */
import { dockerInputs } from '../../src/backends/docker/inputs.ts'
import { superviseDocker } from '../../src/backends/docker/run.ts'
import type { DockerFact } from '../../src/host/facts.ts'
import type { Plan } from '../../src/plan/plan.ts'

interface RunInputs {
  readonly plan: Plan
  readonly fact: DockerFact
  readonly env: Readonly<Record<string, string>>
  readonly command: readonly string[]
  /** Path of the program `container`. */
  readonly init: string
  /** Path of the program on the host. */
  readonly guard: string
  readonly runsDirectory: string
}

const { plan, fact, env, command, init, guard, runsDirectory } = JSON.parse(process.argv[2] ?? '') as RunInputs
await superviseDocker({
  plan,
  run: {
    runId: `killed${process.pid}`,
    docker: { ...dockerInputs(fact, env), init, guard },
    command,
    commandEnv: {},
    nativeDirectory: '/nonexistent',
    runsDirectory,
    stdin: 'nothing',
  },
  stdio: { mode: 'capture', stdin: 'ignore', outputCap: 0 },
})
