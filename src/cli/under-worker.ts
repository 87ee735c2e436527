/**
 * `exec --worker`: what the options say about a worker -> the last word on the policy of a run, and who said it for the audit.
 * The worker's rules, files and questions are src/worker; the code is loaded only for a run that has one.
 *
 * Edge: the user id, the terminal.
 */
import { join } from 'node:path'
import { SandboxError } from '../error.ts'
import { packageRoot } from '../os/native-programs.ts'
import type { Plan } from '../plan/plan.ts'
import type { GivenOptions } from '../policy/option-layer.ts'
import type { Policy } from '../policy/policy.ts'
import type { Environment } from '../run/caller.ts'
import type { NarrowingSources } from '../run/narrowing-sources.ts'
import type { ExecOptions } from '../run/plan-run.ts'
import { APPROVALS, answeredBy, blockedError } from '../worker/approval.ts'
import { approvalsDirectory, sessionMemory } from '../worker/approval-store.ts'
import { type Decided, narrowByWorker, prepareWorker, zonesThatMoved } from '../worker/authorize.ts'
import { compileRules } from '../worker/compile.ts'
import { askOnTerminal } from '../worker/prompt.ts'
import { usageError } from './usage-error.ts'

export interface UnderWorker {
  readonly options: Required<Pick<ExecOptions, 'narrow' | 'accept' | 'narrowedFrom'>>
  /** Undefined until the rules were asked. */
  readonly decided: () => Decided | undefined
}

/** The workers that come with the program. */
export const shippedWorkers = (): string => join(packageRoot(), 'workers')

/** @throws SandboxError USAGE for a workshop without a worker: it would narrow nothing */
function wordsOf({ worker, workshop, profile, approval, 'allow-shell-syntax': allowShellSyntax }: GivenOptions) {
  if (typeof worker !== 'string') {
    throw usageError('--workshop belongs to --worker.', `llm-do exec --worker NAME --workshop ${workshop} -- ...`)
  }
  return {
    worker,
    ...(typeof workshop === 'string' && { workshop }),
    isProfileChosen: profile !== undefined,
    allowShellSyntax: allowShellSyntax === true,
    approval: APPROVALS.find((word) => word === approval) ?? 'prompt',
    shippedDirectory: shippedWorkers(),
  }
}

export interface WorkerInputs {
  readonly given: GivenOptions
  /** The text of `-c`. */
  readonly script: string | undefined
  /** The caller's. */
  readonly env: Environment
}

export function underWorker({ given, script, env }: WorkerInputs): UnderWorker {
  const decisions: Decided[] = []
  const uid = process.getuid?.() ?? -1
  const words = wordsOf(given)
  const narrow = narrowByWorker({
    ...words,
    script,
    memory: sessionMemory({ directory: approvalsDirectory(env, uid), uid }),
    ask: askOnTerminal,
    onDecided: (decided) => void decisions.push(decided),
  })
  return {
    options: { narrow, accept: refuseMovedZones, narrowedFrom: () => sourcesOf(decisions.at(-1), words) },
    // A run may be planned twice. A refusal is the last word; who let it run was asked the first time.
    decided: () => decisions.find(({ run }) => !run) ?? decisions[0],
  }
}

/** For the client, which judges the next command by the same rules. */
function sourcesOf(decided: Decided | undefined, words: ReturnType<typeof wordsOf>): NarrowingSources | undefined {
  if (decided?.lasting === undefined) return undefined
  const { shell, files, missing, seen } = decided.lasting
  const judgement = compileRules(shell, words)
  const read = files.filter((file) => !missing.includes(file))
  return judgement && { read, missing, paths: seen, judgement, worker: decided.worker }
}

export interface PlannedUnderWorker extends Pick<UnderWorker, 'decided'> {
  readonly options: Pick<UnderWorker['options'], 'narrow' | 'accept'>
}

/** The same for a run that is only planned: no question is asked, and a command that is blocked has no plan. */
export function plannedUnderWorker(given: GivenOptions, script: string | undefined): PlannedUnderWorker {
  const decisions: Decided[] = []
  return {
    options: {
      narrow: async (grant, { cwd, home, command }) => {
        const words = wordsOf(given)
        const prepared = await prepareWorker({ ...words, script, grant, cwd, home, command })
        const { worker, verdict, warnings } = prepared
        if (prepared.isBlocked) throw blockedError({ ...verdict, worker: worker.name, word: words.worker })
        const by = verdict.decision === 'ask' && words.approval !== 'prompt' ? answeredBy(words.approval) : verdict.by
        decisions.push({ run: true, by, worker: worker.name, warnings })
        return prepared.policy
      },
      accept: refuseMovedZones,
    },
    decided: () => decisions[0],
  }
}

function refuseMovedZones(policy: Policy, plan: Plan): void {
  const moved = zonesThatMoved(policy, plan.zones)
  if (moved.length === 0) return
  throw new SandboxError(
    'POLICY_ESCALATION',
    `zone ${moved.join(', ')}: its source became another one while it was looked at.`,
    {
      hint: 'look for a symbolic link that something keeps changing, and run it again',
    },
  )
}
