/** A runner or a launcher that is killed takes everything that its command has started with it. `make soak` kills at any moment. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { cliWords } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { runPart } from '../support/host-part.ts'
import { describeWith } from '../support/needs.ts'
import { processesWith, until } from '../support/processes.ts'
import { makeTestSite, PROBE, sh, words } from './chain.ts'
import { begin, planOnce } from './launch.ts'

/** Longer than a test waits: its own deadline would end a run that nothing else ends. */
const LONG = '10m'

const expectGone = (word: string): Promise<void> => expect.poll(() => processesWith(word)).toEqual([])

describeWith('userns', 'the daemons of a command', () => {
  test.each(['SIGTERM', 'SIGKILL'] as const)('end with a runner that gets %s', async (signal) => {
    const site = await makeTestSite()
    const word = `mark-${process.pid}-${signal}`
    const command = sh(`: ${word}; ${PROBE} daemons 5; echo ready; sleep 600; : ${word}`)
    const options = ['--env', `MARK=${word}`, '--timeout', LONG]
    const [file = '', ...argv] = cliWords(words(site, { engine: 'unshare', options }, command))
    const runner = spawn(file, argv, { stdio: ['ignore', 'pipe', 'inherit'] })
    onTestFinished(() => void runner.kill('SIGKILL'))
    await once(runner.stdout, 'data')
    const ended = once(runner, 'exit')
    runner.kill(signal)
    await ended
    await expectGone(word)
    expect(readdirSync(site.zone)).toEqual(['notes'])
  })

  test('end with a launcher that is killed, and the janitor removes its record', async () => {
    const site = await makeTestSite()
    const runsDirectory = join(await temporaryDirectory(), 'runs')
    const word = `mark-${process.pid}-launcher`
    const values = { env: { set: { MARK: word } }, resources: { timeout: LONG } }
    const command = sh(`${PROBE} daemons 3; echo >/zone/ready; exec sleep 600`)
    const planned = await planOnce({ site, engine: 'unshare', command, values, runsDirectory })
    const { started, end } = begin(planned.launch())
    await until('the command', () => readdirSync(site.zone).includes('ready') || undefined)
    expect(processesWith(word)).not.toEqual([])
    process.kill(started.pid, 'SIGKILL')
    await end
    await expectGone(word)
    await runPart('runs', ['prune', runsDirectory])
    expect(readdirSync(runsDirectory)).toEqual([])
  })
})

/** Spread over a start, which takes some ten milliseconds. */
const KILLS = 80

describeWith(['unshare', 'userns', 'one-user'], 'launchers', () => {
  test('that are killed at any moment of a start leave nothing after the janitor', async () => {
    const site = await makeTestSite()
    const runsDirectory = join(await temporaryDirectory(), 'runs')
    const word = `mark-${process.pid}-launchers`
    const planned = await planOnce({
      site,
      engine: 'unshare',
      command: sh(`${PROBE} daemons 3; sleep 600`),
      values: { env: { set: { MARK: word } }, resources: { timeout: LONG } },
      runsDirectory,
    })
    for (let kill = 0; kill < KILLS; kill++) {
      const { started, end } = begin(planned.launch())
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
