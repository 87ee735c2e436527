/** Processes of this machine as /proc tells of them. What has ended between two looks is nowhere. */
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

export function readOr(path: string, otherwise = ''): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return otherwise
  }
}

/** Live processes, but for this one, with the word in their command line or environment. */
export const processesWith = (word: string): readonly string[] =>
  readdirSync('/proc').filter(
    (name) =>
      /^\d+$/.test(name) &&
      Number(name) !== process.pid &&
      `${readOr(`/proc/${name}/cmdline`)}${readOr(`/proc/${name}/environ`)}`.includes(word),
  )

function tasksOf(pid: number): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/task`)
  } catch {
    return []
  }
}

export const childrenOf = (pid: number): readonly number[] =>
  tasksOf(pid).flatMap((task) => readOr(`/proc/${pid}/task/${task}/children`).split(' ').filter(Boolean).map(Number))

export const descendantsOf = (pid: number): readonly number[] =>
  childrenOf(pid).flatMap((child) => [child, ...descendantsOf(child)])

/** Its name, of at most 15 letters. */
export const commOf = (pid: number): string => readOr(`/proc/${pid}/comm`).trim()

/** Asks every few milliseconds. The limit ends a hang before the one of the test does, with a name for it; it measures nothing. */
export async function until<T>(what: string, find: () => T | undefined): Promise<T> {
  for (let left = 20_000; left > 0; left -= 1) {
    const found = find()
    if (found !== undefined) return found
    await sleep(5)
  }
  throw new Error(`${what} did not come`)
}

/** Words that start a program that ends with this process, also when this one is killed. The program must not change its user. */
export const TIED = ['setpriv', '--pdeathsig', 'KILL', '--'] as const
