import { toCents } from './money.mjs'

export function splitLine(line) {
  const cells = ['']
  let isQuoted = false
  for (const sign of line) {
    if (sign === '"') isQuoted = !isQuoted
    else if (sign === ',' && !isQuoted) cells.push('')
    else cells[cells.length - 1] += sign
  }
  if (isQuoted) throw new Error('a quote is never closed')
  return cells
}

export function parse(text) {
  const [head, ...lines] = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  const columns = splitLine(head)
  return lines.map((line) => toEntry(columns, splitLine(line)))
}

function toEntry(columns, cells) {
  const entry = Object.fromEntries(columns.map((column, at) => [column, cells[at]]))
  return { ...entry, amount: toCents(entry.amount) }
}
