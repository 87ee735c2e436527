/**
 * Caches a client's answer about its daemon until something changes that decides it. podman takes half a second of processor time to
 * answer, docker a tenth.
 * Edge: file system (metadata of the files that a client reads, never their content).
 */
import { statSync } from 'node:fs'
import { dirname, isAbsolute, join } from 'node:path'
import { type DockerFact, type FoundProgram, namesIn, type ObserverQuestion, orElse } from '../run-kit.ts'
import { clientEnvironment } from './client-environment.ts'
import { observeDaemon, programOf } from './observe.ts'

/** Path -> which file is there; empty where there is none. */
type Seen = Readonly<Record<string, string>>

interface Known {
  readonly fact: DockerFact
  readonly seen: Seen
}

/** Every limit that a daemon can hold. What lacks one is asked again: a repair is seen at once. */
const ALL_LIMITS = 4

/** @returns what is remembered of exactly this client, environment and configuration, else what the client says now */
export async function knownDaemon(
  client: FoundProgram,
  { env, remembered }: Pick<ObserverQuestion, 'env' | 'remembered'>,
): Promise<DockerFact> {
  const environment = clientEnvironment(env, client.path)
  const files = decidingFiles(programOf(client.path), environment)
  if (files === undefined) return observeDaemon(client.path, { env })
  const variables = JSON.stringify(Object.entries(environment).sort())
  const { fact } = await remembered<Known>(['daemon', client.path, client.stamp, variables], {
    // Looked at before: what changes meanwhile is found to be another one later.
    find: async () => ({ seen: look(files), fact: await observeDaemon(client.path, { env }) }),
    isLasting: ({ fact: { server, remote, limits } }) => server.ok && !remote && limits.length === ALL_LIMITS,
    holds: ({ seen }) => JSON.stringify(seen) === JSON.stringify(look(files)),
  })
  return fact
}

type ClientVariables = Readonly<Record<string, string | undefined>>

/** undefined where the daemon may be elsewhere, or what decides that cannot be told from files at known places. */
function decidingFiles(program: DockerFact['program'], env: ClientVariables): readonly string[] | undefined {
  const files = program === 'podman' ? filesOfPodman(env) : filesOfDocker(env)
  return files?.every((file) => isAbsolute(file)) === true ? files : undefined
}

/** Written by each daemon that starts. A socket that systemd holds (docker.socket) outlives the daemon, and a relay's stays while it leads elsewhere. */
const PID_FILE = 'docker.pid'

function filesOfDocker(env: ClientVariables): readonly string[] | undefined {
  const config = env['DOCKER_CONFIG'] || join(env['HOME'] || '', '.docker')
  const contexts = join(config, 'contexts')
  const host = env['DOCKER_HOST'] || undefined
  if (host === undefined && (env['DOCKER_CONTEXT'] || stampOf(contexts) !== '')) return undefined
  const socket = host === undefined ? '/var/run/docker.sock' : /^unix:\/\/(\/.*)$/.exec(host)?.[1]
  const pidFile = socket === undefined ? '' : join(dirname(socket), PID_FILE)
  if (socket === undefined || stampOf(pidFile) === '') return undefined
  return [socket, pidFile, contexts, join(config, 'config.json')]
}

const PODMAN_DIRECTORIES = ['/usr/share/containers', '/etc/containers']

/** containers.conf(5): the file that a variable names replaces all others. */
function filesOfPodman(env: ClientVariables): readonly string[] | undefined {
  if (env['CONTAINER_HOST'] || env['CONTAINER_CONNECTION']) return undefined
  const own = join(env['XDG_CONFIG_HOME'] || join(env['HOME'] || '', '.config'), 'containers')
  const named = env['CONTAINERS_CONF']
  const usual = [...PODMAN_DIRECTORIES, own].flatMap((directory) =>
    ['containers.conf', 'containers.conf.d'].map((name) => join(directory, name)),
  )
  return [...(named ? [named] : usual), join(own, 'podman-connections.json')]
}

/** For a directory its entries, too: a write to a file in it does not change the directory. */
function look(files: readonly string[]): Seen {
  const entries = files.flatMap((file) =>
    namesIn(file)
      .toSorted()
      .map((name) => join(file, name)),
  )
  return Object.fromEntries([...files, ...entries].map((file) => [file, stampOf(file)]))
}

/** Empty for a file that is not there, or that a client of this user could not read either. */
const stampOf = (file: string): string =>
  orElse('', () => {
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(file, { bigint: true })
    return [dev, ino, size, mtimeNs, ctimeNs].join(':')
  })
