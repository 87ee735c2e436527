import { SandboxError } from '../../src/error.ts'

/** The refusal by which it ends. */
export function refused(act: () => unknown): SandboxError {
  try {
    act()
  } catch (error) {
    if (error instanceof SandboxError) return error
    throw error
  }
  throw new Error('it was let through')
}
