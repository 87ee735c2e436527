/** `llm-do allow NAME|ID HOST[:PORT]...`: more hosts for a run that is alive, by the same rules as --allow-host. */
import { SandboxError } from '../../error.ts'
import { addressProblems } from '../../network/address-plan.ts'
import { type HostRule, LOCALHOST, parseRule, printRule } from '../../network/host-rule.ts'
import { isToolRule } from '../../network/tools/names.ts'
import { readAllowedHost } from '../../policy/readers.ts'
import { neutralise } from '../../report/text.ts'
import { allowWords, type LiveNetwork, liveNetwork } from '../../run/live-network.ts'
import { ownRun } from '../run-records.ts'
import { writeStderr } from '../stdio.ts'
import { subcommand } from '../subcommand.ts'
import { usageError } from '../usage-error.ts'

/** @throws SandboxError USAGE */
function ruleOf(text: string): HostRule {
  const reading = readAllowedHost(text)
  if (!reading.ok) throw usageError(`${neutralise(text)}: expected ${reading.expected}.`, 'llm-do allow --help')
  if (isToolRule(reading.value))
    throw usageError(
      `${reading.value}: what a tool is set up for is looked up when a run starts.`,
      `llm-do exec --plan --allow-host ${reading.value} -- true   (it prints the hosts)`,
    )
  const rule = parseRule(reading.value)
  const [problem] = rule === undefined ? [] : addressProblems({ allow: [rule], deny: [], canGrow: true })
  if (rule?.pattern.kind === 'name' && rule.pattern.name === LOCALHOST)
    throw usageError(
      `${text}: a port of this host is opened when a run starts.`,
      `llm-do run --allow-host ${text} -- COMMAND`,
    )
  if (rule === undefined || problem !== undefined)
    throw usageError(problem ?? `${neutralise(text)} is not a host name.`, 'llm-do allow --help')
  return rule
}

async function allowOne(network: LiveNetwork, answers: AsyncIterator<readonly string[]>, rule: HostRule) {
  const text = printRule(rule)
  network.say(...allowWords(rule))
  const { value: [answer, denial = ''] = [], done } = await answers.next()
  if (done === true)
    throw new SandboxError('RUN_NOT_FOUND', 'the run ended before it heard of it.', { hint: 'llm-do ps' })
  if (answer === 'allowed') return
  if (answer === 'denied')
    throw new SandboxError('POLICY_INVALID', `${text}: the run denies it (${neutralise(denial)}).`, {
      hint: 'a new run without that rule of network.deny',
    })
  throw new SandboxError('POLICY_INVALID', `${text}: the run takes no further hosts.`, {
    hint: 'a new run with --allow-host',
  })
}

/** A rule about an address permits names that lead there: the routes of the running sandbox stay. */
const meant = (rule: HostRule): string =>
  rule.pattern.kind === 'range'
    ? `names may lead to ${printRule(rule)}; the address itself needs a new run`
    : `${printRule(rule)} may be reached`

export const allow = subcommand('allow', async ({ operands: [word = '', ...hosts] }, { env }) => {
  const rules = hosts.map(ruleOf)
  const { id } = ownRun(env, word)
  const network = await liveNetwork(env, id)
  const answers = network.lines[Symbol.asyncIterator]()
  try {
    for (const rule of rules) {
      await allowOne(network, answers, rule)
      await writeStderr([`llm-do: run ${id}: ${meant(rule)}`])
    }
    return 0
  } finally {
    network.close()
  }
})
