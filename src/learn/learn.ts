/**
 * Finds the smallest profile under which a command succeeds. The command runs again and again in a sandbox that is watched (policy/keys/explain.ts), with a
 * copy of each directory that it may write; after each failure it is granted what it was refused, until it succeeds. Then each grant is taken
 * away once: what it succeeds without, it does not need. So nothing is ever shown, reached or changed that the profile does not name in
 * the end, and the last run is the proof of it.
 */
import type { ObservedReport } from '../backends/outcome.ts'
import type { Change } from '../cow/change.ts'
import { discardLayer, findPlace } from '../cow/layers.ts'
import { isCredential } from '../plan/well-known-paths.ts'
import type { SandboxInput } from '../policy/keys/index.ts'
import type { Policy } from '../policy/policy.ts'
import type { Denial, Result } from '../report/result.ts'
import { asCopies } from '../run/copies.ts'
import { exec } from '../run/exec.ts'
import type { ExecOptions } from '../run/plan-run.ts'
import { type Grant, grantFor, withGrant } from './grants.ts'

/** A command that needs more turns than this is not understood. */
const MOST_RUNS = 24
/** A run of a build that waits for a person would never end. */
const LONGEST = '30m'

export interface LearnOptions extends ExecOptions {
  readonly cwd: string
  readonly env: NonNullable<ExecOptions['env']>
  /** Gets messages about the progress, for people. */
  readonly tell: (line: string) => void
}

export interface Learned {
  readonly grants: readonly Grant[]
  /** Refusals that only a person may grant. */
  readonly apart: readonly Denial[]
  /** Places of credentials that it looked for. */
  readonly secrets: readonly string[]
  /** Its changes of the directories that it may write. */
  readonly changes: readonly Change[]
  /** Of the last run. */
  readonly result: Result
  readonly runs: number
}

export async function learn(options: LearnOptions): Promise<Learned> {
  const { cwd, tell } = options
  const apart = new Map<string, Denial>()
  const secrets = new Set<string>()
  let runs = 0
  let grants: readonly Grant[] = []

  const run = async (granted: readonly Grant[]): Promise<Result> => {
    runs += 1
    return await rehearse(options, granted, ({ rows }, homes) => {
      const hidden = rows.filter(({ what }) => what.startsWith('hidden'))
      for (const { path } of hidden) if (homes.some((home) => isCredential(path, home))) secrets.add(path)
    })
  }

  let result = await run(grants)
  while (!result.ok && result.reason !== 'cancelled' && runs < MOST_RUNS) {
    const known = new Set(grants.map(({ fix }) => fix))
    const refused = result.denials.filter(({ fix }) => !known.has(fix))
    const answers = refused.flatMap((denial) => grantFor(denial, cwd) ?? [])
    for (const denial of refused)
      if (grantFor(denial, cwd) === undefined) apart.set(`${denial.operation} ${denial.target}`, denial)
    if (answers.length === 0) break
    grants = answers.reduce(withGrant, grants)
    tell(`run ${runs} failed; granting ${answers.map(({ fix }) => fix).join(' ')}`)
    result = await run(grants)
  }
  if (!result.ok) return { grants, apart: [...apart.values()], secrets: [...secrets], changes: [], result, runs }

  // The last grants are the likeliest to be the cause, so the first are tried first.
  for (const grant of grants.length === 1 ? [] : grants) {
    if (runs === MOST_RUNS) break
    tell(`trying without ${grant.fix}`)
    const fewer = grants.filter((one) => one !== grant)
    const without = await run(fewer)
    if (without.reason === 'cancelled') return { grants, apart: [], secrets: [], changes: [], result: without, runs }
    if (!without.ok) continue
    grants = fewer
    result = without
  }
  const { changes = [] } = result
  return { grants, apart: [...apart.values()], secrets: [...secrets], changes, result, runs }
}

/** Once, watched, and without a trace on the host. */
async function rehearse(
  { narrow, layers = [], tell: _, ...options }: LearnOptions,
  granted: readonly Grant[],
  watch: (report: ObservedReport, homes: readonly string[]) => void,
): Promise<Result> {
  const values: SandboxInput = { explain: true, resources: { timeout: LONGEST } }
  const learning = { layer: 'flag', source: 'llm-do learn', directory: options.cwd, values } as const
  let homes: readonly string[] = []
  const { cow, ...result } = await exec({
    ...options,
    layers: [learning, ...layers, ...granted.map(({ layer }) => layer)],
    narrow: async (grant, request) => {
      homes = request.homes
      return withWorkspaceCopy(asCopies((await narrow?.(grant, request)) ?? grant))
    },
    mode: 'capture',
    stdin: 'ignore',
    watchesLooks: true,
    watch: (report) => watch(report, homes),
  })
  // The result does not point to changes that are gone.
  if (cow !== undefined) await discardLayer(findPlace(cow.id, options.env))
  return result
}

/** Whether or not the caller's directory may be written: what is changed of it is learned from the copy. */
const withWorkspaceCopy = (policy: Policy): Policy =>
  policy.workspace === 'none' ? policy : { ...policy, workspace: 'cow' }
