/**
 * Asks the docker or podman command line about its daemon.
 * Edge: processes (docker info, podman info).
 */
import { execa } from 'execa'
import { answerOf } from './docker-info.ts'
import type { DockerFact } from './facts.ts'
import type { FoundProgram } from './program.ts'

/** Longest wait for a daemon, milliseconds. */
const DAEMON_TIMEOUT_MS = 5_000

/** What the command line needs of the caller's environment to find its daemon. Nothing else is passed on. */
const DAEMON_VARIABLES = [
  'HOME',
  'PATH',
  'DOCKER_HOST',
  'DOCKER_CONTEXT',
  'DOCKER_CONFIG',
  'DOCKER_CERT_PATH',
  'DOCKER_TLS_VERIFY',
  'XDG_RUNTIME_DIR',
  'XDG_CONFIG_HOME',
  'XDG_DATA_HOME',
  'CONTAINER_HOST',
  'CONTAINER_CONNECTION',
  'CONTAINERS_CONF',
] as const

export interface DockerInputs {
  readonly program: 'docker' | 'podman'
  readonly found: FoundProgram
  readonly env: Readonly<Record<string, string | undefined>>
  readonly platform: NodeJS.Platform
}

/** The facts of a container engine; a daemon that does not answer is a fact too. */
export async function observeDocker({ program, found, env, platform }: DockerInputs): Promise<DockerFact> {
  const format = program === 'docker' ? '{{json .}}' : 'json'
  const answer = await execa(found.path, ['info', '--format', format], {
    env: Object.fromEntries(DAEMON_VARIABLES.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]]))),
    extendEnv: false,
    cwd: '/',
    stdin: 'ignore',
    timeout: DAEMON_TIMEOUT_MS,
    forceKillAfterDelay: 100,
    maxBuffer: 4 * 1024 * 1024,
    reject: false,
  })
  const failure = answer.timedOut
    ? `timed out after ${DAEMON_TIMEOUT_MS} ms`
    : answer.failed
      ? answer.stderr || answer.shortMessage || ''
      : ''
  return { program, path: found.path, ...answerOf({ program, stdout: answer.stdout, failure, platform }) }
}
