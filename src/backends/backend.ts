/**
 * The contract of a backend: one row of the table in index.ts. The row itself is small and always loaded, because every plan is
 * chosen among all of them; what only a run needs comes by `load`, so a run loads the code of one backend.
 */
import type { HostFacts } from '../host/facts.ts'
import type { Observer } from '../host/probe.ts'
import type { TerminatedHost } from '../network/termination.ts'
import type { BackendTraits, Offers, Terms } from '../plan/offers.ts'
import type { Plan } from '../plan/plan.ts'
import type { Policy } from '../policy/policy.ts'
import type { BackendName } from '../policy/values.ts'
import type { ChildStdio } from './child-process.ts'
import type { Launch } from './launch.ts'
import type { Outcome } from './outcome.ts'

export interface Backend {
  readonly name: BackendName
  readonly traits: BackendTraits
  /**
   * The native launcher starts the command from a launch file and nothing else, so the C client and pools can start it without
   * planning again.
   */
  readonly hasLaunchFile: boolean
  /** One line about the isolation of a run, in the words that log readers look for. */
  readonly headline: string
  /** Facts that only this backend needs; absent where those that every run observes are enough. */
  readonly observe?: Observation
  /** Everything it can enforce on this host. Pure. */
  readonly offers: (facts: HostFacts) => Offers
  /** Narrows these offers by a policy and the caller's environment. Pure. */
  readonly terms?: (offers: Offers, question: OfferQuestion) => Terms
  /** The walls that a run had, for its result. Pure. */
  readonly isolation: (plan: Plan) => Isolation
  /** Lines of `llm-do doctor`: parts of the machine that it depends on; none where there is nothing to see. */
  readonly describe?: (facts: HostFacts) => Promise<readonly Part[]>
  readonly load: () => Promise<Runner>
}

/** Permissions in the operator's environment; inputs, so that planning stays reproducible. */
export interface Permits {
  /** LLM_DO_ALLOW_UNSANDBOXED=1: the second half of the opt-in for a backend without walls. */
  readonly unsandboxed: boolean
  /** False when ENABLE_DOCKER=false takes docker out of `auto`. */
  readonly docker: boolean
}

export interface OfferQuestion {
  readonly policy: Policy
  readonly facts: HostFacts
  readonly permits: Permits
}

export interface Observation {
  /** Whether a run under this policy observes them at once; otherwise only when the backend is the next candidate. */
  readonly isWanted: (policy: Policy) => boolean
  readonly observe: Observer
}

/** Everything about one run that must not be in a plan, because it differs every time or is secret. */
export interface RunInputs {
  /** Unique among live runs of this user; lower-case letters and digits. */
  readonly runId: string
  readonly command: readonly string[]
  /** The same words as bytes, where one of them is not UTF-8. */
  readonly commandBytes?: readonly Uint8Array[]
  /** The command's complete environment, secrets included. */
  readonly commandEnv: Readonly<Record<string, string>>
  /** Directory of the native programs, see src/os/native-programs.ts. */
  readonly nativeDirectory: string
  /** Where records of live runs are kept, see docs/internals/architecture.md; empty = no record. */
  readonly runsDirectory: string
  /** The directory from which the run was started, for its record; absent if unknown. */
  readonly callerDirectory?: string
  /** Where the changes of copy-on-write zones are kept; absent without such zones. */
  readonly layersDirectory?: string
  /** The layer in it that the run continues; absent = a new one. */
  readonly continued?: string
  /** Hosts whose TLS ends on this one, with the secrets that go to them; absent without. */
  readonly terminatedHosts?: readonly TerminatedHost[]
  /** Certificates for the files that the plan names. */
  readonly authorities?: readonly { readonly target: string; readonly content: string }[]
  /** Proves the user to the operator's proxy; absent without. */
  readonly upstreamAuthorization?: string
  readonly stdin: StdinKind
  /** The sandbox serves other commands, which are asked for there, from the moment on at which this is called. */
  readonly serve?: { readonly directory: string; readonly onServing: () => void }
  /** The command has the caller's stderr, and its end is kept for the report. */
  readonly keepsErrors?: true
  /** A watched run: calls that only ask about a file are watched, too. */
  readonly watchesLooks?: true
}

/** The source of stdin: keys, an immediate end (/dev/null), or bytes of a pipe, a file or the calling program. */
export type StdinKind = 'terminal' | 'nothing' | 'data'

/** A plan that has chosen this backend, with what its run depends on. */
export interface BackendRun {
  readonly plan: Plan
  readonly facts: HostFacts
  /** The caller's environment. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** The caller's directory. */
  readonly cwd: string
  readonly run: RunInputs
}

export interface StartedRun extends BackendRun {
  readonly stdio: ChildStdio
  readonly signal?: AbortSignal | undefined
  /** A limit that turns out not to be held is a warning, not a refusal. */
  readonly bestEffort: boolean
}

/** The part of a backend that only a run needs. */
export interface Runner {
  /** The exact process of a plan, for people. */
  readonly build: (planned: BackendRun) => Launch
  /** Input that the process reads, for people; absent where the argv says everything. */
  readonly print?: (planned: BackendRun) => string
  /** @throws SandboxError when the backend refuses; a command that fails is an outcome */
  readonly run: (started: StartedRun) => Promise<Outcome>
}

/** The walls that a run had. */
export interface Isolation {
  /** The kind of tree at `/`: `empty-root`, `image`, `preopened`, `host`; `none` when nothing was run. */
  readonly fs: string
  readonly pid: boolean
  readonly net: string
  readonly ipc: boolean
  readonly user: boolean
  readonly seccomp: string
}

export type PartState = 'ok' | 'limited' | 'missing'

/** One thing of the machine that runs depend on. */
export interface Part {
  readonly name: string
  readonly state: PartState
  readonly detail: string
  /** A command where it can be one; empty when nothing is to be done. */
  readonly fix: string
}
