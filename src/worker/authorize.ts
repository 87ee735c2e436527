/**
 * `exec --worker W [--workshop F] -- COMMAND` up to the sandbox: finds the files, asks the rules, narrows the policy.
 * Rules come first, because a blocked command needs no policy; what they let through is as tightly held as without them.
 * Edge: looks at files and paths of the project.
 */
import { existsSync } from 'node:fs'
import path from 'node:path'
import { SandboxError } from '../error.ts'
import type { PathFact } from '../host/facts.ts'
import { observeRounds } from '../host/paths.ts'
import type { PathFacts } from '../plan/mounts.ts'
import { stepsAsWritten } from '../plan/names.ts'
import type { PlannedZone } from '../plan/plan.ts'
import type { Request } from '../plan/request.ts'
import type { Policy } from '../policy/policy.ts'
import { didYouMean } from '../text/did-you-mean.ts'
import {
  type Approval,
  blockedError,
  type Memory,
  processMemory,
  type Question,
  type Settling,
  settle,
} from './approval.ts'
import { type Finding, type FoundFile, findWorker, findWorkshop } from './load.ts'
import { escalationError, narrowStep } from './narrow.ts'
import { locationText } from './problem.ts'
import { readWorker, readWorkshop } from './read.ts'
import { decide, decideScript, type Verdict } from './rules.ts'
import type { Level, SandboxRequest, Shell, Warning, Worker, Workshop } from './worker.ts'
import { type Narrowed, pathsToKnow, type ZoneContext } from './zones.ts'

export interface WorkerRequest extends Finding {
  /** Name or path. */
  readonly worker: string
  /** Path. */
  readonly workshop?: string | undefined
  /** The operator's policy: profile, environment, flags. */
  readonly grant: Policy
  /** The operator named the profile, so what it says is said outright. */
  readonly isProfileChosen: boolean
  readonly command: readonly string[]
  /** The text of `-c`; the rules then see it instead of the words of `command`. */
  readonly script?: string | undefined
  readonly allowShellSyntax: boolean
}

/** The files that are in use, read. */
export interface Loaded {
  readonly worker: Worker
  readonly workshop?: Workshop
  /** Canonical directories of the two files. */
  readonly workerDirectory: string
  readonly workshopDirectory?: string
  /** Canonical paths, paths as they were named, and missing ones that would be found first: to stay as they are. */
  readonly files: readonly string[]
  /** The missing ones among them. */
  readonly missing: readonly string[]
}

export type PreparedRun = Loaded & {
  readonly verdict: Verdict
  /** For people, one line each. */
  readonly warnings: readonly string[]
} & (
    | { readonly isBlocked: true }
    | {
        readonly isBlocked: false
        /** The narrowed policy of the operator; `protectFiles` holds the files in use. */
        readonly policy: Policy
        readonly question: Question
        /** Observations of the paths that decide how far a policy is narrowed. */
        readonly seen: PathFacts
      }
  )

/**
 * Everything about a worker's command that is decided before anything is started.
 * A command that `isBlocked` must not run; settle() makes yes or no of every other one.
 * @throws SandboxError WORKER_NOT_FOUND, WORKER_INVALID, POLICY_ESCALATION
 */
export async function prepareWorker(request: WorkerRequest): Promise<PreparedRun> {
  const loaded = await loadFiles(request)
  const { worker, workshop } = loaded
  const verdict = judge(request, worker)
  const common = { ...loaded, verdict }
  const fileWarnings = [...worker.warnings, ...(workshop?.warnings ?? [])]
  if (verdict.decision === 'block') return { ...common, warnings: fileWarnings.map(warningLine), isBlocked: true }
  const narrowed = await policyUnder(loaded, request)
  const { policy } = narrowed
  const question: Question = {
    command: request.command,
    worker: worker.name,
    workerFile: loaded.files[0] ?? worker.file,
    ...(workshop === undefined ? {} : { workshop: workshop.name }),
    policy,
    cwd: request.cwd,
    home: request.home,
    why: verdict.why,
  }
  return {
    ...common,
    warnings: [...fileWarnings, ...narrowed.warnings].map(warningLine),
    isBlocked: false,
    policy,
    question,
    seen: narrowed.seen,
  }
}

/**
 * Narrows the operator's policy, and protects the files in use.
 * @throws SandboxError POLICY_ESCALATION
 */
export async function policyUnder(
  loaded: Loaded,
  { cwd, home, grant, isProfileChosen }: Operator,
): Promise<NarrowedPolicy> {
  const narrowed = await narrowPolicy({ cwd, home, grant, isProfileChosen, ...loaded })
  if (narrowed.escalations.length > 0) throw escalationError(narrowed.escalations, unnamedWorkshop(loaded, cwd))
  const policy = { ...narrowed.policy, protectFiles: [...new Set([...narrowed.policy.protectFiles, ...loaded.files])] }
  return { ...narrowed, policy }
}

const WORKSHOP_HERE = 'workshop.yaml'

/** It may grant the project to a worker, and a command may have written it: only the caller can name it. */
const unnamedWorkshop = ({ workshop }: Loaded, cwd: string): string | undefined =>
  workshop === undefined && existsSync(path.join(cwd, WORKSHOP_HERE)) ? WORKSHOP_HERE : undefined

/** `W_MODE box.yaml:7: workshop.container.mounts.0: ...`. */
export function warningLine(warning: Warning): string {
  return `${warning.code} ${locationText(warning)} ${warning.message}`
}

/** Finds and reads the worker and its workshop. A workshop that lists its workers runs no other. */
export async function loadFiles(request: Finding & Pick<WorkerRequest, 'worker' | 'workshop'>): Promise<Loaded> {
  const workerFile = await findWorker(request.worker, request)
  const worker = readWorker(workerFile)
  const workerDirectory = workerFile.directory
  if (request.workshop === undefined) {
    return { worker, workerDirectory, files: namesOf([workerFile]), missing: workerFile.before }
  }
  const workshopFile = await findWorkshop(request.workshop, request)
  const workshop = readWorkshop(workshopFile)
  refuseUnlistedWorker(worker, workshop)
  const files = namesOf([workerFile, workshopFile])
  const missing = [...workerFile.before, ...workshopFile.before]
  return { worker, workshop, workerDirectory, workshopDirectory: workshopFile.directory, files, missing }
}

/** As they were named, what that leads to, and the names that would be found before. */
function namesOf(found: readonly FoundFile[]): readonly string[] {
  return [...new Set(found.flatMap(({ real, at, before }) => [real, at, ...before]))]
}

function refuseUnlistedWorker(worker: Worker, workshop: Workshop): void {
  const names = workshop.workers?.map(({ name }) => name)
  if (names === undefined || names.includes(worker.name)) return
  const listed = names.length === 0 ? 'none' : names.join(', ')
  const message = `${workshop.file}: worker ${worker.name} does not work here, expected one of: ${listed}.${didYouMean(worker.name, names)}`
  throw new SandboxError('POLICY_ESCALATION', message, { hint: `add it to workers in ${workshop.file}` })
}

function judge({ command, script, allowShellSyntax }: WorkerRequest, { shell }: Worker): Verdict {
  if (shell === null) {
    return {
      decision: 'block',
      by: 'no shell toolset',
      why: 'it names no shell toolset (toolsets: shell, or the tool Bash)',
    }
  }
  return script === undefined ? decide(shell, command) : decideScript({ shell, script, allowShellSyntax })
}

/** The grants of the operator, and the place of the run. */
type Operator = Pick<WorkerRequest, 'cwd' | 'home' | 'grant' | 'isProfileChosen'>

export type Narrowing = Operator & Omit<Loaded, 'files' | 'missing'>

export interface NarrowedPolicy extends Narrowed {
  /** See PreparedRun. */
  readonly seen: PathFacts
}

/** The operator's policy under the workshop, its word about the worker, and the worker, one after the other. */
export async function narrowPolicy(input: Narrowing): Promise<NarrowedPolicy> {
  const { worker, workshop, grant } = input
  const steps: readonly (readonly [Level, SandboxRequest | undefined])[] = [
    ['workshop', workshop?.sandbox],
    ['narrowing', workshop?.workers?.find(({ name }) => name === worker.name)?.narrowing],
    ['worker', worker.sandbox],
  ]
  const { context, seen } = await contextOf(
    input,
    steps.flatMap(([, request]) => request ?? []),
  )
  return steps.reduce<NarrowedPolicy>(
    (sofar, [level, request]) => {
      if (request === undefined) return sofar
      const { policy, escalations, warnings } = narrowStep({ ...input, policy: sofar.policy, level, request, context })
      return {
        policy,
        escalations: [...sofar.escalations, ...escalations],
        warnings: [...sofar.warnings, ...warnings],
        seen,
      }
    },
    { policy: grant, escalations: [], warnings: [], seen },
  )
}

async function contextOf(
  input: Narrowing,
  requests: readonly SandboxRequest[],
): Promise<{ readonly context: ZoneContext; readonly seen: PathFacts }> {
  const { cwd, home, grant, workshop, workerDirectory, workshopDirectory } = input
  const restricts = requests.flatMap(({ restrict }) => restrict?.value ?? [])
  const zones = [...grant.zones, ...requests.flatMap((request) => request.zones)]
  const first = [...pathsToKnow({ zones, restricts, cwd }), home].filter((known) => known !== '')
  const facts = observeRounds(withSteps(first), (seen) =>
    withSteps(pathsToKnow({ zones: zones.map(realZone(seen)), restricts, cwd })),
  )
  // A home directory or the whole host never counts as a project, even with a workshop in it.
  const isProject = (directory: string) => directory !== '/' && directory !== (facts[home]?.real ?? home)
  const context: ZoneContext = {
    cwd,
    project: [cwd, workshopDirectory ?? cwd].filter(isProject),
    own: [workerDirectory, workshopDirectory ?? workerDirectory].filter(isProject),
    // A path that was not inspected is inside of nothing.
    real: (known) => facts[path.resolve(known)]?.real ?? '',
    allowWorkerZones: workshop?.allowWorkerZones ?? false,
  }
  return { context, seen: facts }
}

/** Where a path leads is as it was as long as each step to it is. */
const withSteps = (paths: readonly string[]): readonly string[] => [
  ...new Set(paths.flatMap((known) => [...stepsAsWritten(known), known])),
]

function realZone(seen: Readonly<Record<string, PathFact>>) {
  return <Z extends { readonly hostPath?: string }>(zone: Z): Z =>
    zone.hostPath === undefined ? zone : { ...zone, hostPath: seen[path.resolve(zone.hostPath)]?.real ?? zone.hostPath }
}

/**
 * Zones of workers and workshops whose source is not the one that was judged: something put a link in its place since.
 * @returns names; the run must be refused when there are any
 */
export function zonesThatMoved(
  policy: Pick<Policy, 'zones'>,
  planned: readonly Pick<PlannedZone, 'name' | 'source'>[],
): readonly string[] {
  const judged = policy.zones.filter(({ origin }) => origin.layer === 'worker' || origin.layer === 'workshop')
  return planned
    .filter(({ name, source }) =>
      judged.some((zone) => zone.name === name && zone.hostPath !== undefined && zone.hostPath !== source),
    )
    .map(({ name }) => name)
}

export interface PassRequest extends WorkerRequest {
  readonly approval: Approval
  readonly memory: Memory
  readonly ask: Settling['ask']
  /** Told once it is known whether the command may run, before a refusal is thrown. */
  readonly onDecided: (decided: Decided) => void
}

/** The decider that let a worker's command run or blocked it, for the audit. */
export interface Decided {
  readonly run: boolean
  /** A rule, a person, an option. */
  readonly by: string
  readonly worker: string
  /** For people, one line each. */
  readonly warnings: readonly string[]
  /** How the next command is judged and what that rests on; undefined: by preparing it anew. */
  readonly lasting?: Lasting
}

/** The sources of the policy of a worker's run, and its rules. */
export interface Lasting extends Pick<Loaded, 'files' | 'missing'> {
  readonly shell: Shell
  readonly seen: PathFacts
}

/** A warning is for each run. */
function lastingOf(prepared: PreparedRun): Lasting | undefined {
  if (prepared.isBlocked || prepared.warnings.length > 0) return undefined
  const { shell } = prepared.worker
  const { files, missing, seen } = prepared
  return shell === null ? undefined : { shell, files, missing, seen }
}

/**
 * The whole way of a worker's command up to its sandbox, questions included; what comes back may run under the policy given.
 * @throws SandboxError COMMAND_BLOCKED (exit status 126), and what prepareWorker() throws
 */
export async function passWorker(request: PassRequest): Promise<Policy> {
  const prepared = await prepareWorker(request)
  const { worker, verdict, warnings } = prepared
  const { approval, memory, ask, onDecided } = request
  const settled = prepared.isBlocked
    ? { ...verdict, run: false }
    : await settle({ verdict, approval, question: prepared.question, memory, ask })
  const lasting = lastingOf(prepared)
  onDecided({ run: settled.run, by: settled.by, worker: worker.name, warnings, ...(lasting && { lasting }) })
  if (prepared.isBlocked || !settled.run) throw blockedError({ ...settled, worker: worker.name, word: request.worker })
  return prepared.policy
}

/**
 * The last word on a run's policy, as exec() takes it. The policy may be asked for more than once in a run (making a zone's
 * directory begins the planning again); the person is asked once, for what was shown then.
 */
export function narrowByWorker(
  options: Omit<PassRequest, 'grant' | 'cwd' | 'home' | 'command'>,
): (grant: Policy, request: Pick<Request, 'cwd' | 'home' | 'command'>) => Promise<Policy> {
  const approved = processMemory()
  const memory: Memory = {
    has: async (key) => (await approved.has(key)) || (await options.memory.has(key)),
    add: options.memory.add,
  }
  return async (grant, { cwd, home, command }) => {
    const ask: PassRequest['ask'] = async (text, key) => {
      const answer = await options.ask(text, key)
      if (answer === 'yes') await approved.add(key)
      return answer
    }
    return passWorker({ ...options, grant, cwd, home, command, memory, ask })
  }
}
