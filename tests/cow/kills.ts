/** Apply and undo, killed at each of their system calls: what the next command finds is the tree before, or the tree after. */
import { execa } from 'execa'
import { expect } from 'vitest'
import { becoming } from '../support/users.ts'
import { helperFor, type Place, runtimeOf, treeOf } from './place.ts'

/** Calls that change something, or report that it is on the disk. */
const CALLS = [
  ...['renameat2', 'renameat', 'fsync', 'syncfs', 'chmod', 'fchmod', 'fchmodat', 'utimensat', 'mkdirat', 'write'],
  ...['unlinkat', 'symlinkat', 'fchown'],
]

export interface Killed {
  readonly place: Place
  readonly id: string
  /** Where the layer is. */
  readonly layers: string
  readonly verb: 'apply' | 'undo'
  /** System calls; default: all of them. */
  readonly calls?: readonly string[]
}

/** @returns how many kills there were */
export async function killEverywhere({ place, id, layers, verb, calls = CALLS }: Killed): Promise<number> {
  const env = runtimeOf(place)
  const helper = (word: string, through: readonly string[] = []) => {
    const [file = '', ...words] = [
      ...becoming(place.user),
      ...through,
      ...helperFor(place.user),
      word,
      layers,
      id,
      ...place.holders,
    ]
    return execa(file, words, { env, input: '', reject: false })
  }
  const tree = () => JSON.stringify(treeOf(place.project))
  const before = tree()
  expect((await helper('apply')).exitCode).toBe(0)
  const after = tree()
  expect((await helper('undo')).exitCode).toBe(0)
  expect(tree()).toBe(before)
  let killed = 0
  for (const call of calls) {
    for (let count = 1; ; count += 1) {
      if (verb === 'undo') expect((await helper('apply')).exitCode).toBe(0)
      const inject = ['strace', '-o', '/dev/null', '-e', `inject=${call}:signal=KILL:when=${count}`]
      const { exitCode } = await helper(verb, inject)
      const recovered = await helper('settle')
      const now = tree()
      // Applied again, its files have other times of change, but the same content and modes.
      expect([call, count, recovered.exitCode, now === before || now === after]).toEqual([call, count, 0, true])
      if (now !== before) expect((await helper('undo')).exitCode).toBe(0)
      expect([call, count, tree()]).toEqual([call, count, before])
      if (exitCode === 0) break
      killed += 1
    }
  }
  return killed
}
