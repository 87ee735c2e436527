/** Failures after a warm sandbox has got its command: the command is not run a second time. */
import { expect, test } from 'vitest'
import { kernelThat } from '../support/kernel.ts'
import { describeWith } from '../support/needs.ts'
import { startPool } from './pool.ts'

/** More than the record of an idle sandbox, and than a launch file. */
const LONG = 1 << 16

/** A disk that has room for the records of idle sandboxes, and none for that of a run with a long word. */
const nearlyFullDisk = () => kernelThat([{ refuses: ['pwrite64'], with: 'ENOSPC', from: { argument: 2, value: LONG } }])

describeWith(['gcc', 'bwrap', 'userns'], 'a warm sandbox whose run cannot be recorded', () => {
  test('runs its command, and no other sandbox does', async () => {
    const pool = await startPool({ size: 1, through: await nearlyFullDisk() })
    // A line for each run, and whose it was: the pool's sandboxes have one filter more than those of its clients.
    const command = (word: string) => ['sh', '-c', 'grep Seccomp_filters /proc/self/status', 'sh', word]
    const outside = await pool.run(command(''), { env: { LLM_DO_EXEC_POOL: 'off' } })
    const [, count] = /^Seccomp_filters:\t(\d+)\n$/.exec(outside.stdout.toString()) ?? []
    const inPool = {
      status: 0,
      stdout: Buffer.from(`Seccomp_filters:\t${Number(count) + 1}\n`),
      stderr: Buffer.from(''),
    }
    expect(await pool.runWarm(command(''))).toMatchObject(inPool)
    expect(await pool.runWarm(command('x'.repeat(LONG)))).toMatchObject(inPool)
  })
})
