/** Command lines of every kind that divides otherwise: options of each kind, values that look like options, both ends, shells and their letters. */
const WORDS = [
  '--rw',
  '--env',
  '--json',
  '--json=shell',
  '--rw=.',
  '--',
  '-',
  '',
  '-c',
  '-lc',
  '-o',
  '-e',
  '--login',
  '--another',
  'ls',
  'A=b',
]

/** All lines of up to three words, and the longer ones of whole kinds. */
export function linesOfWords(): readonly (readonly string[])[] {
  const longer = (lines: readonly (readonly string[])[]) =>
    lines.flatMap((line) => WORDS.map((word) => [...line, word]))
  const [one, two, three] = [longer([[]]), longer(longer([[]])), longer(longer(longer([[]])))]
  const beforeScript = ['-eo', 'pipefail', '-c', '-ec', '-Tc', '--norc']
  const scripts = beforeScript.flatMap((a) =>
    beforeScript.flatMap((b) => [one, two].flat().map((line) => [a, b, ...line])),
  )
  return [[], ...one, ...two, ...three, ...scripts]
}
