/**
 * Launcher and engine killed at the same moment: a child of bwrap that has not yet tied itself to its parent then waits for
 * ever. It is the janitor's to find, by the id in its environment where there is no cgroup.
 */
import { spawn } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { runsDirectory } from '../../src/backends/runs-directory.ts'
import { nativeDirectory } from '../../src/os/native-programs.ts'
import { cliWords } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { idsOfOthers } from '../support/leftovers.ts'
import { describeWith } from '../support/needs.ts'
import { ENGINES } from './chain.ts'

const TRIES = 80

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return '' // It has ended, or is not ours to look at.
  }
}

const childrenOf = (pid: number): readonly number[] =>
  read(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean).map(Number)

/** What is left: launchers by the home directory that only this test has, engines and inits by the id of their run. */
const leftBy = (home: string, ids: ReadonlySet<string>): readonly string[] =>
  readdirSync('/proc').filter((name) => {
    const variables = /^\d+$/.test(name) ? read(`/proc/${name}/environ`).split('\0') : []
    return variables.some((word) => word === `HOME=${home}` || ids.has(/^LLM_DO_RUN=(.*)$/.exec(word)?.[1] ?? ''))
  })

function killTree(pid: number): void {
  const launchers = childrenOf(pid)
  for (const victim of [...launchers.flatMap(childrenOf), ...launchers, pid]) {
    try {
      process.kill(victim, 'SIGKILL')
    } catch {
      // It was faster.
    }
  }
}

describeWith('bwrap', 'launcher and engine killed together', () => {
  test.each(ENGINES)('leave no process of %s that the janitor does not find', { timeout: 120_000 }, async (engine) => {
    const home = await temporaryDirectory()
    const cwd = join(home, 'work')
    mkdirSync(cwd)
    const env = { PATH: process.env['PATH'] ?? '', HOME: home, XDG_RUNTIME_DIR: home }
    const runs = runsDirectory(env, process.getuid?.() ?? 0)
    const [file = '', ...words] = cliWords(['--engine', engine, '--', 'true'])
    // Twice: planned, and found in the cache, so that the next ones start within milliseconds.
    for (const _ of [1, 2]) await execa(file, words, { cwd, env, extendEnv: false })
    const seen = new Set<string>()
    for (let n = 0; n < TRIES; n++) {
      const child = spawn(file, words, { cwd, env, stdio: 'ignore' })
      await sleep(2 + (n % 8))
      for (const id of readdirSync(runs)) seen.add(id)
      killTree(child.pid ?? 0)
    }
    await sleep(300)
    expect(seen.size).toBeGreaterThan(0)
    // Root has one directory of records for all its runs: those that a living launcher of another user holds are none of ours, and
    // another user's janitor may have one of ours in its hands just now.
    const leftAfterJanitor = async () => {
      await execa(join(nativeDirectory(), 'runs'), ['prune', runs])
      await sleep(300)
      const others = await idsOfOthers()
      return leftBy(home, new Set([...seen].filter((id) => !others.has(id))))
    }
    await expect.poll(leftAfterJanitor, { timeout: 10_000 }).toEqual([])
  })
})
