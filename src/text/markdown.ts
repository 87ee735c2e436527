/** Lists of the documents that are generated from the code. Pure. */

const LINE_MAX = 120

/** Words on lines of at most 120 characters. @param indent of the second and of each further line */
export function wrapped(text: string, indent: string): string {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const line = lines.at(-1)
    if (line === undefined || line.length + 1 + word.length > LINE_MAX)
      lines.push(line === undefined ? word : indent + word)
    else lines[lines.length - 1] = `${line} ${word}`
  }
  return lines.join('\n')
}
