/** The values of a flag that takes several: `a,b`. Blanks around them do not count. */
export const words = (text: string): readonly string[] =>
  text
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '')
