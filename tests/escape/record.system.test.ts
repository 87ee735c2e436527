/** The record of a run is what the janitor finds by: it goes last, and not before what it names has gone. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import { helpersDirectory } from '../../src/native.ts'
import { superviseNamespace } from '../../src/supervisor/namespace.ts'
import { kernelThat } from '../support/kernel.ts'
import { describeWith } from '../support/needs.ts'
import { ENGINES, makePlace, sh } from './chain.ts'
import { planOnce } from './launch.ts'

/** unlinkat with AT_REMOVEDIR, fcntl.h: what rmdir is. */
const busyDirectories = () =>
  kernelThat([{ refuses: ['unlinkat'], with: 'EBUSY', from: { argument: 2, value: 0x200 } }])

/** Pairs of words, each ended by NUL. */
const groupOf = (record: string): string => /(?:^|\0)cgroup\0([^\0]*)/.exec(readFileSync(record, 'utf8'))?.[1] ?? ''

describeWith(['root', 'gcc', 'userns'], 'a run’s cgroup', () => {
  test.each(ENGINES)('of %s that cannot be removed stays on record until prune removes both', async (engine) => {
    const place = await makePlace()
    const runsDirectory = join(place.base, 'llm-do/runs')
    const planned = await planOnce({ place, engine, command: sh('exit 7'), runsDirectory })
    expect((await planned.run()).outcome).toMatchObject({ cause: 'exit', exitCode: 7 })
    expect(readdirSync(runsDirectory)).toEqual([])

    const [file, filter] = await busyDirectories()
    const launch = planned.launch()
    const outcome = await superviseNamespace({
      launch: { ...launch, file, argv: [filter, launch.file, ...launch.argv] },
      stdio: { mode: 'capture', stdin: 'ignore', outputCap: null },
    })
    const prune = () => execa(join(helpersDirectory(), 'runs'), ['prune', runsDirectory])
    onTestFinished(async () => void (await prune()))
    expect(outcome).toMatchObject({ cause: 'exit', exitCode: 7 })
    const records = readdirSync(runsDirectory)
    expect(records).toHaveLength(1)
    const group = groupOf(join(runsDirectory, ...records))
    expect(existsSync(group)).toBe(true)
    await prune()
    expect([existsSync(group), readdirSync(runsDirectory)]).toEqual([false, []])
  })
})
