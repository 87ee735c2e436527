/**
 * The input of the docker or podman client in addition to its argv. The client is a program of the host and reads its
 * environment (where the daemon is, which configuration), so the command's variables must not simply be mixed into it.
 */

import type { RunInputs } from '../run-kit.ts'
import { CLIENT_NAMES } from './client-environment.ts'
import type { Cover } from './mounts.ts'

/** Everything about the client and its machine that is not in a plan. Made by the edge inputs.ts. */
export interface DockerInputs {
  readonly program: 'docker' | 'podman'
  /** Absolute path of the client. */
  readonly path: string
  readonly platform: 'linux' | 'darwin' | 'win32'
  /** Root inside is the caller outside. */
  readonly rootless: boolean
  /** The daemon is on another machine, or in a virtual one: its files need not be ours. */
  readonly remote: boolean
  /** The client's own environment, without anything of the command. */
  readonly environment: Readonly<Record<string, string>>
  /** Our own user and group. Containers map no ids, so the command has the same ones on the host. */
  readonly caller: { readonly uid: number; readonly gid: number }
  /** Our mask of file modes; the daemon gives containers another one, and only our init can set it. */
  readonly umask: number
  /** This process, see inputs.ts; a container whose runner is gone is swept away. */
  readonly runner: string
  /** Host path of our own init, where the daemon can show it in a container; see native/tools/container-init.c. */
  readonly init?: string
  /** Host path of the guard of protected names; see native/tools/guard.c. */
  readonly guard?: string
  /** Host paths of the programs that serve a restricted network; see native/tools/container-net.c. */
  readonly network?: { readonly program: string; readonly helper: string }
  /** Parts of rw zones that are mounts of their own; absent where nothing is to be started. */
  readonly covers?: readonly Cover[]
  /** Hard limits of this process. podman would raise them, which only a privileged one may. */
  readonly hardLimits: { readonly files: number; readonly processes: number }
}

/** Facts that a run in a container depends on in addition to its plan. */
export interface DockerRunInputs extends RunInputs {
  readonly docker: DockerInputs
}

/** Names with which a variable of the command would steer the client itself, or the loader that starts it. */
const STEERING_PREFIXES = [
  'DOCKER_',
  'CONTAINER_',
  'CONTAINERS_',
  'STORAGE_',
  'XDG_',
  'REGISTRY_',
  'LD_',
  'DYLD_',
  'GLIBC_',
  'MALLOC_',
  'GO',
  'SSL_',
  'OTEL_',
  '_',
] as const

const STEERING_NAMES: ReadonlySet<string> = new Set([...CLIENT_NAMES, 'LANG', 'PATH', 'TERM'])

function steersClient(name: string): boolean {
  const upper = name.toUpperCase()
  return STEERING_NAMES.has(upper) || STEERING_PREFIXES.some((prefix) => upper.startsWith(prefix))
}

/**
 * Proxy variables. The client adds those of its configuration file, passwords included, to every container that does
 * not name them: docs.docker.com, "Configure the Docker client". So each one is named, with or without a value.
 */
export const PROXY_NAMES = ['ALL_PROXY', 'FTP_PROXY', 'HTTPS_PROXY', 'HTTP_PROXY', 'NO_PROXY'].flatMap((name) => [
  name,
  name.toLowerCase(),
])

export interface DividedEnvironment {
  /** `NAME=VALUE` lines for --env-file. */
  readonly lines: readonly string[]
  /** For `--env NAME`: the client takes the value from its own environment. */
  readonly byName: Readonly<Record<string, string>>
  /** Names that can travel neither way. */
  readonly impossible: readonly string[]
}

/** The reader of env files gives up at 64 KiB a line (Go's bufio.MaxScanTokenSize). */
const LONGEST_LINE = 60_000

/** Whether the value survives the reader of env files byte for byte. podman also takes quotes and backslashes apart. */
function fitsLine({ name, value, program }: { name: string; value: string; program: string }): boolean {
  const special = program === 'podman' ? /[\n\r\0"'`\\]/ : /[\n\r\0]/
  return !special.test(value) && Buffer.byteLength(value) + name.length < LONGEST_LINE && !/^[\s#]/.test(name)
}

/**
 * Chooses how each variable of the command gets into the container: never on argv, never where the client gives it a meaning.
 * @param hasFile false where no descriptor can be named as a file (Windows): then everything goes by name
 */
export function divideEnvironment(
  commandEnv: Readonly<Record<string, string>>,
  { program, hasFile }: { readonly program: DockerInputs['program']; readonly hasFile: boolean },
): DividedEnvironment {
  const lines: string[] = []
  const byName: Record<string, string> = {}
  const impossible: string[] = []
  for (const [name, value] of Object.entries(commandEnv).sort(([left], [right]) => (left < right ? -1 : 1))) {
    // A proxy in the env file would lose against the one of the client's configuration.
    const inFile = hasFile && !PROXY_NAMES.includes(name) && fitsLine({ name, value, program })
    if (inFile) lines.push(`${name}=${value}`)
    else if (steersClient(name)) impossible.push(name)
    else byName[name] = value
  }
  return { lines, byName, impossible }
}
