/** Reads the texts of /proc. Pure. */

/** Value of a line `Name:\tvalue` of /proc/PID/status, empty without such a line. */
export function statusLine(status: string, name: string): string {
  const line = status.split('\n').find((one) => one.startsWith(`${name}:`))
  return line?.slice(name.length + 1).trim() ?? ''
}

/** The mask of file modes in a text of /proc/PID/status, NaN when there is none. */
export const umaskIn = (status: string): number => Number.parseInt(statusLine(status, 'Umask'), 8)

/** The processors that a list such as `0-3,8` names; none for an empty or foreign text. */
export function processorsIn(list: string): readonly number[] {
  return list.split(',').flatMap((range) => {
    const [, first = '', last = first] = /^(\d+)(?:-(\d+))?$/.exec(range.trim()) ?? []
    return first === '' ? [] : Array.from({ length: Number(last) - Number(first) + 1 }, (_, at) => Number(first) + at)
  })
}
