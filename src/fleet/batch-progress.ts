/** The line that tells a person how far a batch is. Pure. */

export interface BatchCounts {
  readonly done: number
  readonly failed: number
  /** Tasks of the whole input; undefined where they cannot be counted beforehand. */
  readonly total: number | undefined
}

const WIDEST_BAR = 40
/** Columns that a bar needs to say anything. */
const NARROWEST_BAR = 5

/** @param columns of the terminal; the last one stays free, so that the line is never broken */
export function progressLine({ done, failed, total }: BatchCounts, columns: number): string {
  if (total === undefined || total === 0) return `${done} done, ${failed} failed`.slice(0, columns - 1)
  const share = Math.min(1, done / total)
  const words = ` ${String(Math.floor(100 * share)).padStart(3)} %  ${done} of ${total} done, ${failed} failed`
  const width = Math.min(WIDEST_BAR, columns - words.length - 3)
  if (width < NARROWEST_BAR) return words.trim().slice(0, columns - 1)
  const full = Math.floor(width * share)
  return `[${'#'.repeat(full)}${'.'.repeat(width - full)}]${words}`
}
