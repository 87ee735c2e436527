/**
 * Names such as `@npm` in the operator's list of hosts become the hosts that the caller's tools are set up for, before anything is judged
 * by the list: workers and workshops are compared with the hosts.
 */
import { SandboxError } from '../error.ts'
import { observeGitIdentity, observeToolHosts, type ToolAnswer, type ToolQuestion } from '../host/tool-hosts.ts'
import type { GitIdentity } from '../network/tools/git.ts'
import { type PassedOver, TOOLS, undecided } from '../network/tools/index.ts'
import { isToolRule, toolOf } from '../network/tools/names.ts'
import type { Policy } from '../policy/policy.ts'
import type { NetworkPolicy } from '../policy/values.ts'

/** The sources of a policy with such names. */
export interface ToolSources {
  readonly read: readonly string[]
  readonly missing: readonly string[]
  /** Variables of the caller that would have been obeyed, had they been set. */
  readonly unset: readonly string[]
  /** A variable was obeyed, or a program has answered, and what that rests on is its own matter. */
  readonly isForThisRun: boolean
  readonly warnings: readonly string[]
}

export const NO_TOOLS: ToolSources = { read: [], missing: [], unset: [], isForThisRun: false, warnings: [] }

export interface Resolved {
  readonly policy: Policy
  readonly tools: ToolSources
}

/** @throws SandboxError POLICY_INVALID for a tool that is set up for nothing */
export async function resolveToolHosts(policy: Policy, question: Omit<ToolQuestion, 'names'>): Promise<Resolved> {
  const wanted = policy.network.allow.filter(isToolRule)
  const names = [...new Set(wanted.flatMap((rule) => toolOf(rule) ?? []))]
  if (policy.network.mode !== 'restricted' || names.length === 0) return { policy, tools: NO_TOOLS }
  const answers = await observeToolHosts({ ...question, names })
  refuseEmpty(answers.filter(({ name }) => wanted.includes(name)))
  const network = withHosts(
    policy.network,
    answers.filter(({ hosts }) => hosts.length > 0),
  )
  const deciding = answers.flatMap(({ looked }) => looked.deciding)
  const protectFiles = [...new Set([...policy.protectFiles, ...deciding])]
  return { policy: { ...policy, network, protectFiles }, tools: sourcesOf(answers, network) }
}

/** With the files and variables of git among what the policy was resolved from. */
export function readGitIdentity(
  { policy, tools }: Resolved,
  question: Omit<ToolQuestion, 'names'>,
): { readonly identity?: GitIdentity; readonly tools: ToolSources } {
  if (!policy.gitIdentity) return { tools }
  const { looked, ...identity } = observeGitIdentity(question)
  const isSet = looked.variables.some((variable) => variable.isSet)
  return {
    identity,
    tools: {
      ...tools,
      read: [...new Set([...tools.read, ...looked.read])],
      missing: [...new Set([...tools.missing, ...looked.missing])],
      unset: [...new Set([...tools.unset, ...looked.variables.map(({ name }) => name)])],
      isForThisRun: tools.isForThisRun || isSet,
    },
  }
}

function refuseEmpty(answers: readonly ToolAnswer[]): void {
  const problems = answers.filter(({ hosts }) => hosts.length === 0).map(nothingFound)
  const [first] = problems
  if (first === undefined) return
  const hints = answers.filter(({ hosts }) => hosts.length === 0).map(({ name }) => TOOLS[name].fix)
  throw new SandboxError('POLICY_INVALID', first, { problems, hint: `${hints.join(', ')}; or --allow-host HOST` })
}

function nothingFound({ name, looked, passedOver }: ToolAnswer): string {
  const variables = looked.variables.map((variable) => `$${variable.name}`)
  const places = [...new Set([...looked.deciding, ...variables])].join(', ')
  const but = passedOver.map(({ host, from }) => `; ${from} names ${host}`).join('')
  return `network.allow: ${name}: no ${TOOLS[name].means} that could be reached is set up for you (looked at ${places})${but}.`
}

/** Replaces the names by hosts; a host that the same words deny is removed, as for any other list. */
function withHosts(network: NetworkPolicy, answers: readonly ToolAnswer[]): NetworkPolicy {
  const hosts = answers.flatMap((answer) => answer.hosts)
  const allow = [...new Set([...network.allow.filter((host) => !isToolRule(host)), ...hosts])]
  return {
    ...network,
    allow: allow.filter((host) => !network.deny.includes(host)),
    tools: answers.map(({ name, hosts: found, from }) => ({ name, hosts: found, from })),
  }
}

function sourcesOf(answers: readonly ToolAnswer[], network: NetworkPolicy): ToolSources {
  const all = <Value>(of: (answer: ToolAnswer) => readonly Value[]) => [...new Set(answers.flatMap(of))]
  const variables = all(({ looked }) => looked.variables)
  return {
    read: all(({ looked }) => looked.read),
    missing: all(({ looked }) => looked.missing),
    unset: [...new Set(variables.filter(({ isSet }) => !isSet).map(({ name }) => name))],
    isForThisRun: variables.some(({ isSet }) => isSet) || answers.some(({ looked }) => looked.isAsked),
    warnings: answers.flatMap((answer) => undecided(answer, network).map((passed) => warningOf(answer.name, passed))),
  }
}

function warningOf(name: string, { host, from, why }: PassedOver): string {
  return why === 'local'
    ? `${name}: ${host} of ${from} is this host itself, which is not the loopback of the sandbox`
    : `${name}: ${host} is named only by the project (${from}) and stays closed; --allow-host ${host} opens it, --deny-host ${host} ends this warning`
}
