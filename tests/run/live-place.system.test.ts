/** The directories of live sandboxes: one that a killed process left is removed, another name is not touched. */
import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { ownDirectory } from '../../src/host/own-directory.ts'
import { processTable } from '../../src/os/process-identity.ts'
import { openLiveSandbox } from '../../src/run/live-sandbox.ts'
import { describeWith, testWith } from '../support/needs.ts'

/** Above the most that pid_max may be (PID_MAX_LIMIT). */
const NO_PROCESS = 4_194_305

describeWith('userns', 'the directory of a live sandbox', () => {
  testWith([], 'takes away what a killed process left, whatever else is there', async () => {
    const all = join(ownDirectory(process.env, process.getuid?.() ?? -1), 'live')
    const [left, other] = [join(all, encodeURIComponent(`${processTable()}/${NO_PROCESS}:1 run`)), join(all, '%zz')]
    for (const place of [left, other]) mkdirSync(place, { recursive: true, mode: 0o700 })
    onTestFinished(() => {
      for (const place of [left, other]) rmSync(place, { recursive: true, force: true })
    })
    const live = await openLiveSandbox({})
    await live.close()
    expect([existsSync(left), existsSync(other)]).toEqual([false, true])
  })
})
