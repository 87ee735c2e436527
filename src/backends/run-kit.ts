/**
 * The door of the core for the runs of backends outside of it: src/backends/docker and wasm import this file and row-kit.ts, and nothing
 * else of src/. tests/architecture.test.ts holds that.
 */
export { EXEC_FAILURES, type LaunchStatus, NET_ADDRESS, NODE_WITHOUT_DEBUGGER } from '../contract.ts'
export { type ErrorCode, SandboxError } from '../error.ts'
export type { DockerFact, HostFacts, Probe } from '../host/facts.ts'
export type { ObserverQuestion } from '../host/probe.ts'
export { type FoundProgram, findProgram } from '../host/program.ts'
export { planAddresses } from '../network/address-plan.ts'
export { rulesOf } from '../network/host-rule.ts'
export { type HeldLock, tryLock } from '../os/file-lock.ts'
export { namesIn, orElse, textOf } from '../os/look.ts'
export { makeDirectories } from '../os/make-directories.ts'
export { nativeDirectory, partWord } from '../os/native-programs.ts'
export { isGone, ownIdentity } from '../os/process-identity.ts'
export { promised } from '../os/promised.ts'
export { runProgram, SYSTEM_PATH } from '../os/run-program.ts'
export { ownUmask } from '../os/umask.ts'
export type { PlannedLimit, PlannedLimits } from '../plan/limits.ts'
export type { Plan, PlannedZone, Scratch, SystemEntry } from '../plan/plan.ts'
export { protectedSystems } from '../plan/protected-paths.ts'
export { isWithin, WORKSPACE } from '../plan/well-known-paths.ts'
export { LIMIT_NEEDS } from '../policy/needs.ts'
export { GIT } from '../policy/protected.ts'
export type { Need, NetworkMode, NetworkPolicy } from '../policy/values.ts'
export { allowedCubes, type Cube } from '../seccomp/cube.ts'
export { ERRNO } from '../seccomp/errno.ts'
export { keptSets } from '../seccomp/filter.ts'
export {
  type Clause,
  clausesFor,
  PROFILE_NAMES,
  type ProfileName,
  type SeccompRules,
  type SetName,
  shippedRules,
} from '../seccomp/rules.ts'
export { type Arch, SYSCALLS } from '../seccomp/syscalls.ts'
export { jsonIn, mappingIn } from '../text/json.ts'
export type { BackendRun, Part, RunInputs, Runner, StartedRun } from './backend.ts'
export { NO_CAPTURE } from './capture.ts'
export { type ChildEnd, openUnlinked, runChild, type Stoppable } from './child-process.ts'
export { ownReason, REASON_OF_CAUSE, withExitStatus } from './ending.ts'
export { isNative, type Launch, type LaunchDescriptor, type NativeLaunch } from './launch.ts'
export { guardedOf, networkOf, outcomeOf, parseLaunchStatus } from './launch-status.ts'
export { buildNamespace, enginePathOf, type NamespaceInputs, zoneRecords } from './namespace/build.ts'
export { writeLaunchFile } from './namespace/launch-file.ts'
export { networkRecords } from './namespace/network.ts'
export { superviseNamespace } from './namespace/run.ts'
export {
  endedOnItsOwn,
  type Guarded,
  type NetworkReport,
  type Outcome,
  type ProtectedAttempt,
  type SetupFailure,
} from './outcome.ts'
