/** Under an observer: the rows of the doctor, and the other engine. */
import { expect, test } from 'vitest'
import { CONTRACT } from '../../src/doctor/rows/index.ts'
import { runnerBy, tryRow } from '../../src/doctor/self-test.ts'
import { exec } from '../../src/run/exec.ts'
import { runPart } from '../support/host-part.ts'
import { describeWith } from '../support/needs.ts'
import { describeObserver } from './observer.ts'

describeObserver('bwrap')

const explain = { layer: 'flag', source: 'test', directory: '/', values: { explain: true } } as const

describeWith(['unshare', 'userns'], 'the walls', () => {
  test('are the same for a command that is watched', async () => {
    const runner = runnerBy((options) => exec({ ...options, layers: [...(options.layers ?? []), explain] }))
    const { stdout } = await runPart('launch', ['--probe-host'])
    const broken: string[] = []
    for (const row of CONTRACT) {
      const verdict = await tryRow(row, { engine: 'unshare', landlockAbi: Number(stdout), runner })
      if (verdict.kind === 'broken') broken.push(`${row.id}: ${verdict.why}`)
    }
    expect(broken).toEqual([])
  }, 600_000)
})
