/** One zone, as it is written and as it is read. */
import type { ZoneMode } from '../values.ts'
import type { Measured } from './key.ts'

export interface ZoneInput {
  readonly name?: string | undefined
  readonly mode?: ZoneMode | undefined
  readonly hostPath?: string | undefined
  readonly target?: string | undefined
  readonly size?: Measured | undefined
  readonly create?: boolean | undefined
  readonly optional?: boolean | undefined
  readonly sockets?: boolean | undefined
  readonly kind?: 'socket' | undefined
  readonly secret?: boolean | undefined
}

/** Size in bytes. */
export interface ParsedZone extends Omit<ZoneInput, 'size'> {
  readonly size?: number | undefined
}

/** Size of a tmpfs zone that names none. */
export const ZONE_SIZE = 50 * 1024 ** 2
export const ZONE_SIZE_TEXT = '50m'
