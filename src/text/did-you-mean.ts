/** The known word that was probably meant. */

/** Edits that turn one word into the other: insert, delete, replace, swap two neighbours (optimal string alignment). */
function distance(from: string, to: string): number {
  let beforeLast: readonly number[] = []
  let last: readonly number[] = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let row = 1; row <= from.length; row++) {
    const current = [row]
    for (let column = 1; column <= to.length; column++) {
      const differs = from[row - 1] === to[column - 1] ? 0 : 1
      const isSwap = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]
      current[column] = Math.min(
        (current[column - 1] ?? 0) + 1,
        (last[column] ?? 0) + 1,
        (last[column - 1] ?? 0) + differs,
        isSwap ? (beforeLast[column - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
      )
    }
    beforeLast = last
    last = current
  }
  return last[to.length] ?? 0
}

/** Longest word worth comparing: a distance costs the product of the lengths, and no known word is longer. */
const LONGEST = 64

/**
 * The known word nearest to `word`, case aside, or undefined when none is near: at most one edit in three letters.
 * Equal distance: the one listed first.
 */
export function nearest(word: string, known: readonly string[]): string | undefined {
  if (word.length === 0 || word.length > LONGEST) return undefined
  const wanted = word.toLowerCase()
  const ranked = known
    .map((candidate) => ({ candidate, edits: distance(wanted, candidate.toLowerCase()) }))
    .filter(({ candidate, edits }) => edits <= Math.max(1, Math.ceil(Math.min(wanted.length, candidate.length) / 3)))
    .sort((a, b) => a.edits - b.edits)
  return ranked[0]?.candidate
}

/** Ends a message: ` Did you mean "memory"?`, or nothing when no known word is near. */
export function didYouMean(word: string, known: readonly string[]): string {
  const near = nearest(word, known)
  return near === undefined || near === word ? '' : ` Did you mean "${near}"?`
}
