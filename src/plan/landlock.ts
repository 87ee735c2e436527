/** Whether init puts Landlock on the command. Pure. */

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
