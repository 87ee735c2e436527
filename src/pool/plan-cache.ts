/**
 * Plans of an open sandbox, one a program, made once and used again for the same caller. The runner looks, each time, whether what a
 * plan was made from is still as it was; where it is not, the plan is made again.
 * Edge: files, the clock, process.env.
 */
import { closeSync } from 'node:fs'
import { openUnlinked } from '../backends/child-process.ts'
import type { PathFact } from '../host/facts.ts'
import { observePaths } from '../host/paths.ts'
import { invocationOf } from '../launch-cache/cache-key.ts'
import { Callers, type Guards, guardsWith, type Lasting, observeLasting, readGuards } from '../launch-cache/guards.ts'
import { packageRoot, packageVersion } from '../os/native-programs.ts'
import { named } from '../plan/hash.ts'
import { pathFact } from '../plan/mounts.ts'
import { decidedBy } from '../plan/paths-to-inspect.ts'
import { guardPlan, plainLaunch } from '../run/cache-plan.ts'
import { prepareZones } from '../run/make-zones.ts'
import { type ExecOptions, type Prepared, prepare } from '../run/plan-run.ts'
import { now } from '../run/run-id.ts'

export type PlanOptions = Omit<ExecOptions, 'command' | 'mode'>

/** Plans that are kept, one a program. */
const MOST_PLANS = 256

/** A plan as one run uses it. */
export interface PlannedRun {
  readonly prepared: Prepared
  /** The command's environment. */
  readonly env: Readonly<Record<string, string>>
  readonly kept: KeptPlan
}

type Variables = NonNullable<ExecOptions['env']>

interface KeptPlanParts {
  readonly prepared: Prepared
  /** All that the plan was made from. */
  readonly guards: Guards | undefined
  readonly lasting: Lasting | undefined
}

/** One plan with its launch files. */
export class KeptPlan {
  readonly prepared: Prepared
  /** The launch file without the facts that the plan was made from: equal for all programs that need the same sandbox. */
  readonly launchFile: Buffer
  private readonly guards: Guards | undefined
  private readonly callers: Callers | undefined
  private readonly lasting: Lasting | undefined
  private file: number | undefined
  private isClosed = false

  /** @param guards undefined for a plan that cannot be used again */
  constructor({ prepared, guards, lasting }: KeptPlanParts) {
    this.prepared = prepared
    this.guards = guards
    this.lasting = lasting
    this.launchFile = Buffer.from(plainLaunch(prepared))
    const caller = { version: packageVersion(), root: packageRoot(), cwd: prepared.request.cwd }
    const invocation = invocationOf({ options: [], command: prepared.request.command })
    this.callers = guards && lasting && new Callers({ guards, lasting, invocation, caller })
  }

  /**
   * The same plan for a directory that was made anew at the path of one of its zones. What was seen in the one before it has to hold for
   * this one, too: the runner looks. File systems often give the new one the number of the old one: then the plan is the same.
   * @returns undefined when its owner or mode differs, or it is not a directory
   */
  forNew(directory: string): KeptPlan | undefined {
    const { guards, lasting, prepared } = this
    const [before, seen] = [prepared.facts.paths[directory], observePaths([directory])[directory]]
    if (guards === undefined || before === undefined || seen?.identity === undefined) return undefined
    if (seen.identity === before.identity) return this
    if (ownerAndMode(before) !== ownerAndMode(seen) || seen.kind !== 'directory' || seen.real !== directory)
      return undefined
    const { dev, ino } = seen
    const { hash: _, ...plan } = prepared.plan
    const zones = plan.zones.map((zone) => (zone.source === directory ? { ...zone, dev, ino } : zone))
    const facts = { ...prepared.facts, paths: { ...prepared.facts.paths, [directory]: seen } }
    return new KeptPlan({
      prepared: { ...prepared, facts, plan: named({ ...plan, zones }, pathFact(facts.paths, prepared.request.cwd)) },
      guards: guardsWith(guards, directory, seen.identity),
      lasting,
    })
  }

  /** @returns the environment of the next command; undefined for another caller than the plan was made for */
  environment(env: Variables): Readonly<Record<string, string>> | undefined {
    return this.callers?.environmentFor(env)
  }

  /** The facts that the runner checks before it starts the command. */
  get files(): Uint8Array | undefined {
    return this.guards?.files
  }

  /** Path of the launch file for this process, which opens it anew for each child; undefined when the plan has been dropped. */
  get path(): string | undefined {
    if (this.isClosed) return undefined
    this.file ??= openUnlinked(this.launchFile)
    return `/proc/self/fd/${this.file}`
  }

  close(): void {
    this.isClosed = true
    if (this.file !== undefined) closeSync(this.file)
    this.file = undefined
  }
}

/** The part of an identity that does not depend on the number of the directory (host/paths.ts). */
const ownerAndMode = ({ identity = '' }: PathFact): string => identity.split(':').slice(2).join(':')

interface Attempt {
  readonly program: string
  readonly env: ExecOptions['env']
  /** Called with the plan of an earlier run, before it is known whether it is for this caller. */
  readonly onKept?: (kept: KeptPlan) => void
}

export class Plans {
  private readonly options: PlanOptions
  private readonly kept = new Map<string, Promise<KeptPlan>>()
  private isClosed = false

  constructor(options: PlanOptions) {
    this.options = options
  }

  /**
   * One attempt with the plan of an earlier run, and where there is none for this caller, or what it was made from has changed, one
   * with a new plan.
   * @param attempt answers undefined when the runner has found the plan stale: then nothing has been run
   * @throws SandboxError for a policy or a host that allows no run
   */
  async attempt<T>(
    { program, env, onKept }: Attempt,
    attempt: (run: PlannedRun) => Promise<T | undefined>,
  ): Promise<T | undefined> {
    const before = this.kept.get(program)
    const known = await this.forCaller(before, env, onKept)
    const done = known && (await attempt(known))
    if (done !== undefined) return done
    const run = await this.make(program, env, before)
    try {
      return await attempt(run)
    } finally {
      // A plan for another environment is not kept, so nothing else would close its file.
      if (env !== undefined) run.kept.close()
    }
  }

  /** @param before the old value; undefined at first */
  async make(program: string, env: ExecOptions['env'], before?: Promise<KeptPlan>): Promise<PlannedRun> {
    const options = env === undefined ? this.options : { ...this.options, env }
    // Another run may have found it stale in the meantime, and be planning already.
    const now = this.kept.get(program)
    const made = env === undefined && now !== undefined && now !== before ? now : keepPlan({ options, program })
    if (env === undefined && made !== now) this.put(program, made)
    const kept = await made
    return { prepared: kept.prepared, env: kept.prepared.commandEnv, kept }
  }

  private async forCaller(
    plan: Promise<KeptPlan> | undefined,
    env: ExecOptions['env'],
    onKept: Attempt['onKept'],
  ): Promise<PlannedRun | undefined> {
    const kept = await plan
    if (kept !== undefined) onKept?.(kept)
    const commandEnv = kept?.environment(env ?? this.options.env ?? process.env)
    return kept && commandEnv && { prepared: kept.prepared, env: commandEnv, kept }
  }

  /** A run that is under way plans for itself. */
  close(): void {
    this.isClosed = true
    this.dropAll()
  }

  private dropAll(): void {
    for (const plan of this.kept.values()) drop(plan)
    this.kept.clear()
  }

  private put(program: string, made: Promise<KeptPlan>): void {
    if (this.isClosed) {
      drop(made)
      return
    }
    if (this.kept.size >= MOST_PLANS) this.dropAll()
    const old = this.kept.get(program)
    if (old !== undefined) drop(old)
    this.kept.set(program, made)
    made.catch(() => {
      if (this.kept.get(program) === made) this.kept.delete(program)
    })
  }
}

function drop(plan: Promise<KeptPlan>): void {
  // A failed plan holds nothing, and its caller got the error.
  plan.then((kept) => kept.close()).catch(() => undefined)
}

/** @throws SandboxError for a policy or a host that allows no run */
export async function keepPlan({
  options,
  program,
}: {
  readonly options: PlanOptions
  readonly program: string
}): Promise<KeptPlan> {
  const request: ExecOptions = { ...options, command: [program], mode: 'capture' }
  const begunMs = now()
  const prepared = await prepareZones(() => prepare(request))
  const guarded = await guardPlan(prepared, {
    invocation: invocationOf({ options: [], command: [program] }),
    paths: decidedBy(prepared.policy, prepared.request, prepared.facts.paths),
    begunMs,
  })
  return new KeptPlan({
    prepared,
    guards: guarded && readGuards(guarded.bytes),
    lasting: guarded && observeLasting(),
  })
}
