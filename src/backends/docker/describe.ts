/** The line of the doctor about the client and its daemon. Pure. */
import type { HostFacts, Part } from '../run-kit.ts'
import { restrictedObstacle } from './offers.ts'

export function describeDocker({ platform, docker }: HostFacts): readonly Part[] {
  const name = 'docker'
  if (docker === undefined)
    return [{ name, state: 'limited', detail: 'no docker on PATH', fix: 'only needed for --backend docker' }]
  const who = `${docker.path} ${docker.clientVersion}`
  if (!docker.server.ok)
    return [{ name, state: 'limited', detail: `${who}: ${firstLine(docker.server.message)}`, fix: '' }]
  const kind = docker.rootless ? ', rootless' : ''
  const detail = `${who}, daemon ${docker.serverVersion ?? ''}${kind}; holds ${docker.limits.join(', ')}`
  const lack = restrictedObstacle({ platform, docker })
  const network = lack === undefined ? '; network by name' : ''
  return [{ name, state: 'ok', detail: `${detail}${network}`, fix: '' }]
}

const firstLine = (text: string): string => text.trim().split('\n')[0] ?? ''
