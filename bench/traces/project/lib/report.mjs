import { format } from './money.mjs'

export function sumByCategory(entries) {
  const sums = new Map()
  for (const { category, amount } of entries) sums.set(category, (sums.get(category) ?? 0) + amount)
  return sums
}

export function report(entries, { currency } = {}) {
  const sums = [...sumByCategory(entries)].sort(([, a], [, b]) => a - b)
  return sums.map(([category, cents]) => `${category.padEnd(12)}${format(cents, currency).padStart(16)}`).join('\n')
}
