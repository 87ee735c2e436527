/** The calls that Docker's JSON lets through, read as plainly as possible. */
import type { DockerSeccomp } from '../../../src/backends/docker/seccomp-profile.ts'

/** As the engines read it: any rule of the call whose arguments all fit. */
export function isAllowed({ syscalls }: DockerSeccomp, name: string, args: readonly bigint[]): boolean {
  return syscalls.some(
    ({ names, action, args: conditions = [] }) =>
      action === 'SCMP_ACT_ALLOW' &&
      names.includes(name) &&
      conditions.every(({ index, value, valueTwo }) => ((args[index] ?? 0n) & BigInt(value)) === BigInt(valueTwo)),
  )
}
