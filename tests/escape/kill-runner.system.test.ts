/**
 * Runners and launchers that are ended at any moment, and many runs: nothing is left, nothing grows.
 * LLM_DO_TEST_KILLS and LLM_DO_TEST_RUNS say how many; the defaults take about a minute on two slow processors.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import { runLaunch } from '../../src/backends/namespace/launch-process.ts'
import { nativeDirectory } from '../../src/os/native-programs.ts'
import { cliWords } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { collect, ENGINES, makeTestSite, PROBE, sh, words } from './chain.ts'
import { planOnce } from './launch.ts'

const KILLS = Number(process.env.LLM_DO_TEST_KILLS ?? 200)
const RUNS = Number(process.env.LLM_DO_TEST_RUNS ?? 1000)
const STDIO = { mode: 'capture', stdin: 'ignore', outputCap: null } as const

function readOr(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return '' // It has ended.
  }
}

/** Live processes of the host that carry the word in their command line or environment. */
const processesWith = (word: string): readonly string[] =>
  readdirSync('/proc').filter(
    (name) =>
      /^\d+$/.test(name) &&
      Number(name) !== process.pid &&
      `${readOr(`/proc/${name}/cmdline`)}${readOr(`/proc/${name}/environ`)}`.includes(word),
  )

async function expectGone(word: string, withinMs: number): Promise<void> {
  for (let left = withinMs; left > 0 && processesWith(word).length > 0; left -= 20) await sleep(20)
  expect(processesWith(word)).toEqual([])
}

/** Groups that outlived their runs, by the ids of the runs. */
function groupsOf(ids: readonly string[]): readonly string[] {
  const root = /^\S+ \S+ \S+ \S+ (\S+) .* - cgroup2 /m.exec(readFileSync('/proc/self/mountinfo', 'utf8'))?.[1]
  if (root === undefined || !existsSync(root)) return []
  const names = readdirSync(root)
  return ids.filter((id) => names.includes(`llm-do-${id}`))
}

const openDescriptors = (): number => readdirSync('/proc/self/fd').length
const mountsBelow = (base: string): readonly string[] =>
  readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((line) => line.includes(base))

const lines = (text: Buffer): string => text.toString()

for (const engine of ENGINES) {
  describeWith([engine, 'userns'], `with ${engine}`, () => {
    test.each(['SIGTERM', 'SIGINT', 'SIGKILL'] as const)(
      'a runner that gets %s takes its daemons with it',
      async (signal) => {
        const site = await makeTestSite()
        const word = `mark-${process.pid}-${signal}-${engine}`
        const command = sh(`: ${word}; ${PROBE} daemons 5; echo ready; sleep 60; : ${word}`)
        const [file = '', ...argv] = cliWords(words(site, { engine, options: ['--env', `MARK=${word}`] }, command))
        const runner = spawn(file, argv, { stdio: ['ignore', 'pipe', 'inherit'] })
        onTestFinished(() => void runner.kill('SIGKILL'))
        const text: Buffer[] = []
        runner.stdout.on('data', (chunk: Buffer) => text.push(chunk))
        while (!lines(Buffer.concat(text)).includes('ready')) await sleep(10)
        const ended = once(runner, 'exit')
        runner.kill(signal)
        await ended
        await expectGone(word, 2_000)
        expect(readdirSync(site.zone)).toEqual(['notes'])
      },
    )
  })
}

for (const engine of ENGINES) {
  describeWith([engine, 'userns'], `many with ${engine}`, () => {
    test(`${KILLS} launchers that are killed at a random moment leave nothing after the janitor`, {
      timeout: 120_000,
    }, async () => {
      const site = await makeTestSite()
      const runsDirectory = join(await temporaryDirectory(), 'runs')
      const word = `mark-${process.pid}-${engine}-soak`
      const planned = await planOnce({
        site,
        engine,
        command: sh(`${PROBE} daemons 3; sleep 60`),
        values: { env: { set: { MARK: word } } },
        runsDirectory,
      })
      const ids = await collect(KILLS, async (n) => {
        const launch = planned.launch()
        const started = { pid: 0 }
        const end = runLaunch({
          launch,
          stdio: STDIO,
          isEarly: false,
          onStart: (pid) => (started.pid = pid),
          stop: async () => undefined,
        })
        // Spread over the whole of a start, which takes some ten milliseconds.
        await sleep((n * 7) % 40)
        process.kill(started.pid, 'SIGKILL')
        await end
        return launch.argv[1] ?? ''
      })
      await expectGone(word, 3_000)
      await execa(join(nativeDirectory(), 'runs'), ['prune', runsDirectory])
      expect(readdirSync(runsDirectory)).toEqual([])
      expect(readdirSync(site.zone)).toEqual(['notes'])
      expect(groupsOf(ids)).toEqual([])
      expect(mountsBelow(site.base)).toEqual([])
    })

    test(`${RUNS} short runs are complete and let nothing grow`, { timeout: 180_000 }, async () => {
      const site = await makeTestSite()
      const runsDirectory = join(await temporaryDirectory(), 'runs')
      const word = `mark-${process.pid}-${engine}-runs`
      const planned = await planOnce({
        site,
        engine,
        command: ['/usr/bin/printf', 'DONE'],
        values: { env: { set: { MARK: word } } },
        runsDirectory,
      })
      await planned.run()
      const before = openDescriptors()
      const outcomes = await collect(RUNS / 2, () => Promise.all([planned.run(), planned.run()]))
      expect(outcomes.flat().filter(({ stdout }) => stdout !== 'DONE')).toEqual([])
      await expectGone(word, 1_000)
      expect(openDescriptors()).toBe(before)
      expect(mountsBelow(site.base)).toEqual([])
      expect(readdirSync(runsDirectory)).toEqual([])
      expect(readdirSync(site.zone)).toEqual(['notes'])
    })
  })
}
