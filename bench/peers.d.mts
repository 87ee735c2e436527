export function byHand(words: readonly string[]): readonly string[]
