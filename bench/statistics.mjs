// Numbers of many runs as few numbers, and as text. Pure.

/** The value below which the share `p` of all values lies; nearest rank. */
export function quantile(values, p) {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(p * sorted.length) - 1))]
}

export const median = (values) => quantile(values, 0.5)

/** Of neighbours, because a load that comes and goes is larger than what is asked for; the spread is that of the middle half. */
export function netRatio(times) {
  const [idleInside, idleOutside] = [median(times['true inside']), median(times['true outside'])]
  const ratios = times.inside.map((ns, round) => (ns - idleInside) / (times.outside[round] - idleOutside))
  const half = [0.25, 0.75].map((p) => quantile(ratios, p).toFixed(2))
  return { value: median(ratios), note: `middle half of ${ratios.length} rounds: ${half.join(' to ')}` }
}

/** Columns as wide as their widest cell; the first one to the left, numbers to the right. */
export function table(head, rows) {
  const all = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column].length)))
  const line = (row) =>
    row.map((cell, column) => (column === 0 ? cell.padEnd(widths[column]) : cell.padStart(widths[column]))).join('  ')
  return [line(head), widths.map((width) => '-'.repeat(width)).join('  '), ...rows.map(line)].join('\n')
}
