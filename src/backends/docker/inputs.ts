/**
 * Facts about this process and its client that the docker backend needs.
 * Edge: /proc, the package's own files, the caller's environment.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type DockerFact, nativeDirectory, ownIdentity, ownUmask, textOf } from '../run-kit.ts'
import { clientEnvironment } from './client-environment.ts'
import type { DockerInputs } from './command-environment.ts'

export function dockerInputs(docker: DockerFact, hostEnv: Readonly<NodeJS.ProcessEnv>): DockerInputs {
  const [init, guard, network] = [ownInit(docker), ownGuard(docker), ownNetwork()]
  return {
    program: docker.program,
    path: docker.path,
    platform: platformNow(),
    rootless: docker.rootless,
    remote: docker.remote,
    caller: { uid: process.getuid?.() ?? ORDINARY_ID, gid: process.getgid?.() ?? ORDINARY_ID },
    umask: ownUmask(),
    environment: clientEnvironment(hostEnv, docker.path),
    runner: ownIdentity(),
    hardLimits: hardLimits(),
    ...(init !== undefined && { init }),
    ...(guard !== undefined && { guard }),
    ...(network !== undefined && { network }),
  }
}

/** A daemon on another machine does not see our files; under SELinux a container may not open what a user made. */
function ownInit({ remote, labelled }: DockerFact): string | undefined {
  const file = join(nativeDirectory(), 'container')
  return !remote && labelled !== true && process.platform === 'linux' && existsSync(file) ? file : undefined
}

/** It watches this machine's files; those of a daemon on another machine are out of its reach. */
function ownGuard({ remote }: DockerFact): string | undefined {
  const file = join(nativeDirectory(), 'llm-do')
  return !remote && process.platform === 'linux' && existsSync(file) ? file : undefined
}

function ownNetwork(): DockerInputs['network'] {
  const [program = '', helper = ''] = ['container', 'net'].map((name) => join(nativeDirectory(), name))
  return process.platform === 'linux' && existsSync(program) && existsSync(helper) ? { program, helper } : undefined
}

/** Windows has no such ids; Docker Desktop lets any id read its files. */
const ORDINARY_ID = 1000

function platformNow(): DockerInputs['platform'] {
  return process.platform === 'darwin' || process.platform === 'win32' ? process.platform : 'linux'
}

/** Without /proc the client is remote anyway and nothing here bounds the container. */
function hardLimits(): DockerInputs['hardLimits'] {
  const limits = textOf('/proc/self/limits')
  const hard = (name: string): number => {
    const word = new RegExp(`^${name} +\\S+ +(\\S+)`, 'm').exec(limits)?.[1]
    return word === undefined || word === 'unlimited' ? Number.MAX_SAFE_INTEGER : Number(word)
  }
  return { files: hard('Max open files'), processes: hard('Max processes') }
}
