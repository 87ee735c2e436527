/** Reads what `docker info` and `podman info` print. Pure; what is not there counts as absent, so an old or strange engine offers less. */
import type { DockerFact, Probe } from './facts.ts'

export interface InfoInputs {
  readonly program: 'docker' | 'podman'
  readonly stdout: string
  /** Why the program failed, empty when it did not. */
  readonly failure: string
  readonly platform: NodeJS.Platform
}

type Answer = Omit<DockerFact, 'program' | 'path'>
type Tree = Readonly<Record<string, unknown>>

/** The facts in an answer. */
export function answerOf({ program, stdout, failure, platform }: InfoInputs): Answer {
  const info = parsed(stdout)
  const errors = listOf(info['ServerErrors'])
  const trouble =
    failure !== '' || errors.length > 0 || stdout.trim() === ''
      ? [failure, ...errors].filter(Boolean).join(' ') || 'it printed nothing'
      : ''
  const read = program === 'docker' ? dockerAnswer(info) : podmanAnswer(info)
  const elsewhere = read.remote || platform !== 'linux'
  if (trouble === '') return { ...read, remote: elsewhere, server: { ok: true } }
  return {
    clientVersion: read.clientVersion,
    rootless: read.rootless,
    limits: [],
    remote: elsewhere,
    server: refusal(program, trouble),
  }
}

function refusal(program: string, message: string): Probe {
  return { ok: false, step: `${program} info`, errno: '', message: message.trim() }
}

type Read = Omit<Answer, 'server'>

function dockerAnswer(info: Tree): Read {
  const limits = [
    info['MemoryLimit'] === true ? (['memory'] as const) : [],
    info['SwapLimit'] === true ? (['swap'] as const) : [],
    info['CpuCfsQuota'] === true ? (['cpus'] as const) : [],
    info['PidsLimit'] === true ? (['pids'] as const) : [],
  ].flat()
  const version = textOf(info['ServerVersion'])
  return {
    clientVersion: textOf(treeOf(info['ClientInfo'])['Version']),
    ...(version === '' ? {} : { serverVersion: version }),
    rootless: listOf(info['SecurityOptions']).some((option) => option.includes('rootless')),
    limits,
    remote: textOf(info['OperatingSystem']).includes('Docker Desktop'),
  }
}

/** Rootless podman on cgroup v1 takes limits, prints a warning and ignores them: it offers none. */
function podmanAnswer(info: Tree): Read {
  const host = treeOf(info['host'])
  const rootless = treeOf(host['security'])['rootless'] === true
  const controllers = listOf(host['cgroupControllers'])
  const has = (controller: string): boolean =>
    !(rootless && host['cgroupVersion'] !== 'v2') && controllers.includes(controller)
  const version = textOf(treeOf(info['version'])['Version'])
  return {
    clientVersion: version,
    ...(version === '' ? {} : { serverVersion: version }),
    rootless,
    limits: [
      has('memory') ? (['memory', 'swap'] as const) : [],
      has('cpu') ? (['cpus'] as const) : [],
      has('pids') ? (['pids'] as const) : [],
    ].flat(),
    remote: host['serviceIsRemote'] === true,
  }
}

function parsed(text: string): Tree {
  try {
    return treeOf(JSON.parse(text))
  } catch {
    // Not JSON: the failure that came with it says more than the parser could.
    return {}
  }
}

function treeOf(value: unknown): Tree {
  return value !== null && typeof value === 'object' ? (value as Tree) : {}
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function listOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []
}
