/** Reads the texts of /proc. Pure. */

/** Value of a line `Name:\tvalue` of /proc/PID/status, empty without such a line. */
export function statusLine(status: string, name: string): string {
  const line = status.split('\n').find((one) => one.startsWith(`${name}:`))
  return line?.slice(name.length + 1).trim() ?? ''
}

/** The mask of file modes in a text of /proc/PID/status, NaN when there is none. */
export const umaskIn = (status: string): number => Number.parseInt(statusLine(status, 'Umask'), 8)

/** How many processors a list such as `0-3,8` names; 0 for an empty or foreign text. */
export function countProcessors(list: string): number {
  const ranges = list.split(',').map((range) => /^(\d+)(?:-(\d+))?$/.exec(range.trim()))
  return ranges.reduce(
    (sum, match) => sum + (match === null ? 0 : Number(match[2] ?? match[1]) - Number(match[1]) + 1),
    0,
  )
}
