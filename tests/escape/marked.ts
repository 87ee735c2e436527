/** Processes of the host that carry a mark. */
import { readdirSync } from 'node:fs'
import { expect } from 'vitest'
import { readOr } from '../support/processes.ts'

/** Live processes, but for this one, with the word in their command line or environment. */
export const processesWith = (word: string): readonly string[] =>
  readdirSync('/proc').filter(
    (name) =>
      /^\d+$/.test(name) &&
      Number(name) !== process.pid &&
      `${readOr(`/proc/${name}/cmdline`)}${readOr(`/proc/${name}/environ`)}`.includes(word),
  )

export const expectGone = (word: string): Promise<void> =>
  expect.poll(() => processesWith(word), { timeout: 10_000, interval: 20 }).toEqual([])
