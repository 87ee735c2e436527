/**
 * Launchers that are killed at every moment of a start: nothing is left after the janitor. The kills are spread over a start, which takes some
 * ten milliseconds; LLM_DO_TEST_KILLS says how many.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { runLaunch } from '../../src/backends/namespace/launch-process.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { runPart } from '../support/host-part.ts'
import { describeWith } from '../support/needs.ts'
import { makeTestSite, PROBE, sh } from './chain.ts'
import { planOnce } from './launch.ts'
import { expectGone } from './marked.ts'

const KILLS = Number(process.env.LLM_DO_TEST_KILLS ?? 80)

describeWith(['unshare', 'userns'], 'launchers', () => {
  test('that are killed at any moment of a start leave nothing after the janitor', async () => {
    const site = await makeTestSite()
    const runsDirectory = join(await temporaryDirectory(), 'runs')
    const word = `mark-${process.pid}-launchers`
    const planned = await planOnce({
      site,
      engine: 'unshare',
      command: sh(`${PROBE} daemons 3; sleep 60`),
      values: { env: { set: { MARK: word } } },
      runsDirectory,
    })
    for (let kill = 0; kill < KILLS; kill++) {
      const started = { pid: 0 }
      const end = runLaunch({
        launch: planned.launch(),
        stdio: { mode: 'capture', stdin: 'ignore', outputCap: null },
        isEarly: false,
        onStart: (pid) => Object.assign(started, { pid }),
        stop: async () => undefined,
      })
      await sleep((kill * 7) % 40)
      process.kill(started.pid, 'SIGKILL')
      await end
    }
    await expectGone(word)
    await runPart('runs', ['prune', runsDirectory])
    expect(readdirSync(runsDirectory)).toEqual([])
    expect(readdirSync(site.zone)).toEqual(['notes'])
  })
})
