/** The error of a call that comes too late. Pure. */
import { SandboxError } from '../error.ts'

/** @param by how another one is made */
export const closedError = (what: string, by: string): SandboxError =>
  new SandboxError('SANDBOX_CLOSED', `the ${what} was closed before`, { hint: `${by}, or close it later` })
