/** Whether init puts Landlock on the command, and what that closes. Pure. */

/** Landlock version that can close UNIX sockets reached by a path (LANDLOCK_ACCESS_FS_RESOLVE_UNIX, Linux 7.1). */
export const LANDLOCK_CLOSES_SOCKETS = 9

/** Landlock before this version forbids renames between directories altogether. */
const LANDLOCK_WITH_RENAMES = 2

export interface LandlockInputs {
  /** Version of the kernel's Landlock, 0 without. */
  readonly landlockAbi: number
  /** Name or file of the system call filter. */
  readonly seccomp: { readonly profile: string }
}

/** Landlock forbids every mount, so a sandbox inside the sandbox could not be built under it. */
export function usesLandlock({ landlockAbi, seccomp }: LandlockInputs): boolean {
  return landlockAbi >= LANDLOCK_WITH_RENAMES && seccomp.profile !== 'nested'
}

/** Whether the command can reach UNIX sockets that lie in its zones. */
export function closesSockets(inputs: LandlockInputs): boolean {
  return inputs.landlockAbi >= LANDLOCK_CLOSES_SOCKETS && usesLandlock(inputs)
}
