/** Whether a plan has copy-on-write zones, whose changes stay in a layer of the run. Pure. */
import type { Plan, PlannedZone } from '../plan/plan.ts'

const isLayered = ({ mode }: Pick<PlannedZone, 'mode'>): boolean => mode === 'cow'

export const hasLayers = ({ zones }: Pick<Plan, 'zones'>): boolean => zones.some(isLayered)
