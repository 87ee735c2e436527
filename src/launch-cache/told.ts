/** What is kept beside the launch file of a run that is told as JSON: the plan, for the words of the result. Pure. */
import type { Plan } from '../plan/plan.ts'
import type { GuardedLaunch } from './store.ts'

export interface Told {
  /** Sum of the launch file that it belongs to. */
  readonly check: string
  readonly plan: Plan
  readonly form: string
}

/** Name of the file for the launch file of that name. */
export const toldName = (name: string): string => `${name}.told`

export function toldWith({ name, bytes, pool }: GuardedLaunch, told: Omit<Told, 'check'>): GuardedLaunch {
  // The first record is `check SUM`, after the magic word: see file.ts.
  const check = Buffer.from(bytes).toString('latin1').split('\0', 3)[2] ?? ''
  return { name: toldName(name), bytes: Buffer.from(JSON.stringify({ check, ...told } satisfies Told)), pool }
}
