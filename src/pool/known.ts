/**
 * Plans of an open sandbox, one a program, made once and used again as long as everything that they were made from is as it was:
 * the rule of launch-cache/, in memory.
 * Edge: files, the clock, process.env.
 */
import { closeSync } from 'node:fs'
import { now, prepareZones } from '../edges.ts'
import { type ExecOptions, guardPlan, type Prepared, plainLaunch, prepare } from '../exec.ts'
import type { Invocation } from '../launch-cache/cache-key.ts'
import { environmentIfFresh, type Guards, type Lasting, observeLasting, readGuards } from '../launch-cache/fresh.ts'
import { packageRoot, packageVersion } from '../os/native-helpers.ts'
import { openUnlinked } from '../supervisor/child.ts'

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
/** False: the places are left to whoever starts the command. */
type Look = { readonly withPlaces: boolean }

/** One plan with its launch file, which stays open. */
export class KeptPlan {
  readonly prepared: Prepared
  readonly launchFile: Buffer
  private readonly guards: Guards | undefined
  private readonly caller: { readonly version: string; readonly root: string; readonly cwd: string }
  private readonly invocation: Invocation
  private readonly lasting: Lasting | undefined
  private file: number | undefined

  constructor({ prepared, guards }: { readonly prepared: Prepared; readonly guards: Guards | undefined }) {
    this.prepared = prepared
    this.guards = guards
    this.lasting = guards && observeLasting()
    this.launchFile = Buffer.from(plainLaunch(prepared))
    this.caller = { version: packageVersion(), root: packageRoot(), cwd: prepared.request.cwd }
    this.invocation = invocationOf(prepared.request.command)
    this.file = openUnlinked(this.launchFile)
  }

  /** @returns the environment of the next command; undefined when something has changed, or nobody can tell */
  environment(env: Variables, { withPlaces }: Look): Readonly<Record<string, string>> | undefined {
    const { guards, lasting, invocation } = this
    if (guards === undefined || lasting === undefined) return undefined
    // A copy: each look at process.env asks the C library.
    const caller = { ...this.caller, env: { ...env } }
    return environmentIfFresh({ guards, withPlaces, lasting, invocation, caller })
  }

  /** What a warm sandbox looks at before it starts the command; undefined where that must be done beforehand. */
  get places(): Uint8Array | undefined {
    return this.guards?.frame
  }

  /** Path of the launch file for this process, which opens it anew for each child; undefined when the plan has been dropped. */
  get path(): string | undefined {
    return this.file === undefined ? undefined : `/proc/self/fd/${this.file}`
  }

  close(): void {
    if (this.file !== undefined) closeSync(this.file)
    this.file = undefined
  }
}

/** A plan depends on the program (its toolchain), never on the arguments. */
const invocationOf = ([program = '']: readonly string[]): Invocation => ({ kind: 'command', options: [], program })

export class Plans {
  private readonly options: PlanOptions
  private readonly kept = new Map<string, Promise<KeptPlan>>()

  constructor(options: PlanOptions) {
    this.options = options
  }

  /** The plan of an earlier run, if it holds but for the places: a warm sandbox can look at them, and must. */
  async supposed(program: string, env: ExecOptions['env']): Promise<PlannedRun | undefined> {
    const run = await this.known(program, env ?? this.options.env ?? process.env, { withPlaces: false })
    return run?.kept.places && run
  }

  private async known(program: string, env: Variables, look: Look): Promise<PlannedRun | undefined> {
    const kept = await this.kept.get(program)
    const fresh = kept?.environment(env, look)
    return kept && fresh && { prepared: kept.prepared, env: fresh, kept }
  }

  /** @throws SandboxError for a policy or a host that allows no run */
  async for(program: string, env: ExecOptions['env']): Promise<PlannedRun> {
    const asked = env ?? this.options.env ?? process.env
    const before = this.kept.get(program)
    const known = await this.known(program, asked, { withPlaces: true })
    if (known !== undefined) return known
    const options = env === undefined ? this.options : { ...this.options, env }
    // Somebody else may have found it stale in the meantime, and be planning already.
    const now = this.kept.get(program)
    const made = env === undefined && now !== undefined && now !== before ? now : keepPlan({ options, program })
    if (env === undefined && made !== now) this.put(program, made)
    const kept = await made
    return { prepared: kept.prepared, env: kept.prepared.commandEnv, kept }
  }

  close(): void {
    for (const plan of this.kept.values()) drop(plan)
    this.kept.clear()
  }

  private put(program: string, made: Promise<KeptPlan>): void {
    if (this.kept.size >= MOST_PLANS) this.close()
    const old = this.kept.get(program)
    if (old !== undefined) drop(old)
    this.kept.set(program, made)
    made.catch(() => {
      if (this.kept.get(program) === made) this.kept.delete(program)
    })
  }
}

function drop(plan: Promise<KeptPlan>): void {
  // What could not be planned holds nothing, and whoever asked has been told.
  plan.then((kept) => kept.close()).catch(() => undefined)
}

async function keepPlan({
  options,
  program,
}: {
  readonly options: PlanOptions
  readonly program: string
}): Promise<KeptPlan> {
  const asked: ExecOptions = { ...options, command: [program], mode: 'capture' }
  const begunMs = now()
  const prepared = await prepareZones(() => prepare(asked))
  const guarded = await guardPlan(prepared, { invocation: invocationOf([program]), begunMs })
  return new KeptPlan({ prepared, guards: guarded && readGuards(guarded.bytes) })
}
