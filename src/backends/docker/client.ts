/**
 * Short conversations with the daemon through its client.
 * Edge: processes.
 */
import { execa } from 'execa'
import type { DockerInputs } from './command-environment.ts'
import type { ContainerReport } from './outcome.ts'

export interface ClientReply {
  readonly ok: boolean
  readonly stdout: string
  readonly stderr: string
}

/** Longest time that a daemon may take for an answer; a hanging one must not hang us. */
const ANSWER_MS = 60_000

/** Asks the client one thing. Never throws: a client that is missing or hangs is an answer too. */
export async function runClient(docker: DockerInputs, argv: readonly string[]): Promise<ClientReply> {
  const { failed, stdout, stderr, shortMessage } = await execa(docker.path, argv, {
    env: docker.environment,
    extendEnv: false,
    reject: false,
    stdin: 'ignore',
    timeout: ANSWER_MS,
  })
  return { ok: !failed, stdout, stderr: stderr || (failed ? (shortMessage ?? '') : '') }
}

export async function inspectContainer(docker: DockerInputs, name: string): Promise<ContainerReport | undefined> {
  const reply = await runClient(docker, ['container', 'inspect', name])
  return reply.ok ? (JSON.parse(reply.stdout) as readonly ContainerReport[])[0] : undefined
}

export async function removeContainer(docker: DockerInputs, name: string): Promise<void> {
  await runClient(docker, ['rm', '--force', '--volumes', name])
}
