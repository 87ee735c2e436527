/** Puts words on as few lines as they need. Pure. */
export interface WrapShape {
  readonly width: number
  /** Begins the second and each later line. */
  readonly indent?: string | undefined
}

export function wrapped(words: readonly string[], { width, indent = '' }: WrapShape): readonly string[] {
  const lines = words.slice(0, 1)
  for (const word of words.slice(1)) {
    const longer = `${lines.at(-1)} ${word}`
    if (longer.length <= width) lines[lines.length - 1] = longer
    else lines.push(`${indent}${word}`)
  }
  return lines
}
