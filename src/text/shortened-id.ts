/** Shortened IDs of runs. Pure. */

/** Everything that a word means: the one with this ID, else all whose IDs start with it. An empty word means nothing. */
export function meantBy<T extends { readonly id: string }>(word: string, all: readonly T[]): readonly T[] {
  const same = all.filter(({ id }) => id === word)
  return same.length > 0 || word === '' ? same : all.filter(({ id }) => id.startsWith(word))
}
