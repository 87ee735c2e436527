/** Turns the configuration of the caller's tools into rules of the network. Pure; the caller answers the questions of `Look`. */
import { parseRange, rangeCovers } from '../address.ts'
import { judge, parseRule, rulesOf } from '../host-rule.ts'
import { apt } from './apt.ts'
import { cargo } from './cargo.ts'
import { git } from './git.ts'
import { go } from './go.ts'
import type { Look, Mention, Tool } from './look.ts'
import type { ToolName } from './names.ts'
import { npm } from './npm.ts'
import { pip } from './pip.ts'
import { ruleOfScp, ruleOfUrl } from './url.ts'

interface ToolRow {
  readonly mentions: Tool
  readonly means: string
  /** How to say what was not found. */
  readonly fix: string
}

export const TOOLS: Readonly<Record<ToolName, ToolRow>> = {
  '@npm': { mentions: npm, means: 'registry of npm', fix: 'npm config set registry URL' },
  '@pip': { mentions: pip, means: 'index of pip', fix: 'pip config set global.index-url URL' },
  '@cargo': { mentions: cargo, means: 'registry of cargo', fix: '--allow-host of its index and of its downloads' },
  '@go': { mentions: go, means: 'module proxy of go', fix: 'go env -w GOPROXY=URL' },
  '@apt': { mentions: apt, means: 'mirror of apt', fix: '/etc/apt/sources.list' },
  '@git': { mentions: git, means: 'remote of a repository of yours', fix: 'git remote add NAME URL' },
}

export interface ToolHosts {
  readonly name: ToolName
  /** Rules, each with a port. */
  readonly hosts: readonly string[]
  /** Files, variables and programs that named them. */
  readonly from: readonly string[]
  /** Hosts that only the project names, and hosts that are this machine itself. */
  readonly passedOver: readonly PassedOver[]
}

export interface PassedOver {
  readonly host: string
  readonly from: string
  readonly why: 'project' | 'local'
}

const LOOPBACK = ['127.0.0.0/8', '0.0.0.0/8', '::1', '::'].flatMap((text) => parseRange(text) ?? [])

/** The sandbox has another loopback. */
function isLocal(rule: string): boolean {
  const pattern = parseRule(rule)?.pattern
  if (pattern?.kind === 'range') return LOOPBACK.some((range) => rangeCovers(range, pattern.range))
  return pattern?.kind === 'name' && /(?:^|\.)localhost$/.test(pattern.name)
}

/** Only git and what it is used by write `HOST:PATH`. */
const ruled = (name: ToolName, mentions: readonly Mention[]): readonly Omit<PassedOver, 'why'>[] =>
  mentions.flatMap(({ url, from }) => {
    const host = ruleOfUrl(url) ?? (name === '@git' ? ruleOfScp(url) : undefined)
    return host === undefined ? [] : [{ host, from }]
  })

const unique = <Value>(values: readonly Value[]): readonly Value[] => [...new Set(values)]

export async function hostsOf(name: ToolName, look: Look): Promise<ToolHosts> {
  const { own, project } = await TOOLS[name].mentions(look)
  const named = ruled(name, own)
  const reachable = named.filter(({ host }) => !isLocal(host))
  return {
    name,
    hosts: unique(reachable.map(({ host }) => host)).toSorted(),
    from: unique(reachable.map(({ from }) => from)),
    passedOver: [
      ...named.filter(({ host }) => isLocal(host)).map((found) => ({ ...found, why: 'local' as const })),
      ...ruled(name, project).map((found) => ({ ...found, why: 'project' as const })),
    ],
  }
}

/** Hosts of a project without a rule: one that is allowed or denied by name has been decided. */
export function undecided(
  { passedOver }: ToolHosts,
  network: { readonly allow: readonly string[]; readonly deny: readonly string[] },
): readonly PassedOver[] {
  const rules = rulesOf(network)
  return passedOver.filter(({ host, why }) => {
    const rule = parseRule(host)
    if (why === 'local' || rule === undefined || typeof rule.port !== 'number') return why === 'local'
    const { isAllowed, rule: by } = judge(rules, rule.pattern, rule.port)
    return !isAllowed && by === undefined
  })
}
