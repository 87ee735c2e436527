/** JSON for review: a mount, a zone, a variable or a limit is one line, so that one changed promise is one changed line. */

/** Longest list on one line; a longer one fills lines. */
const WIDTH = 160

const isScalar = (value: unknown): boolean => typeof value !== 'object' || value === null
const isScalarList = (value: unknown): value is readonly unknown[] => Array.isArray(value) && value.every(isScalar)
const isShort = (value: unknown): boolean =>
  isScalar(value) || (isScalarList(value) && onOneLine(value).length <= WIDTH)

export const printPlan = (plan: object): string => `${printed(JSON.parse(JSON.stringify(plan)), '')}\n`

function onOneLine(value: unknown): string {
  if (isScalarList(value)) return `[${value.map((one) => JSON.stringify(one)).join(', ')}]`
  return isScalar(value) ? JSON.stringify(value) : `{ ${fields(value as object, onOneLine).join(', ')} }`
}

const fields = (value: object, print: (one: unknown) => string): readonly string[] =>
  Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${print(one)}`)

function printed(value: unknown, indent: string): string {
  const isWhole = indent === ''
  if (isShort(value) || (!isWhole && !Array.isArray(value) && Object.values(value as object).every(isShort)))
    return onOneLine(value)
  const inner = `${indent}  `
  const [open, close] = Array.isArray(value) ? '[]' : '{}'
  return `${open}\n${partsOf(value, inner)
    .map((line) => `${inner}${line}`)
    .join(',\n')}\n${indent}${close}`
}

function partsOf(value: unknown, indent: string): readonly string[] {
  if (isScalarList(value)) return filled(value.map((one) => JSON.stringify(one)))
  if (Array.isArray(value)) return value.map((one) => printed(one, indent))
  return fields(value as object, (one) => printed(one, indent))
}

/** Words on as few lines as they fit on. */
function filled(words: readonly string[]): readonly string[] {
  const lines: string[] = []
  for (const word of words) {
    const last = lines.at(-1)
    if (last === undefined || last.length + word.length + 2 > WIDTH) lines.push(word)
    else lines[lines.length - 1] = `${last}, ${word}`
  }
  return lines
}
