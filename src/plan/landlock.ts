/** Whether init puts Landlock on the command, and what that closes. Pure. */

import { LANDLOCK_CLOSES_SOCKETS, LANDLOCK_RENAMES } from '../contract.ts'

export interface LandlockInputs {
  /** Version of the kernel's Landlock, 0 without. */
  readonly landlockAbi: number
  /** Name or file of the system call filter. */
  readonly seccomp: { readonly profile: string }
}

/** Landlock forbids every mount, so a sandbox inside the sandbox could not be built under it. */
export function usesLandlock({ landlockAbi, seccomp }: LandlockInputs): boolean {
  return landlockAbi >= LANDLOCK_RENAMES && seccomp.profile !== 'nested'
}

/** Whether the command can reach UNIX sockets that lie in its zones. */
export function closesSockets(inputs: LandlockInputs): boolean {
  return inputs.landlockAbi >= LANDLOCK_CLOSES_SOCKETS && usesLandlock(inputs)
}
