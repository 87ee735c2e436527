/** Every parser of the native part under libFuzzer, ASan and UBSan: its corpus, and the same new inputs each time. `make fuzz` takes longer. */
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { describeWith } from '../support/needs.ts'
import { FUZZ, TARGETS } from './targets.ts'

const RUNS = 5000

describeWith('libfuzzer', 'the parsers of the native part', () => {
  test('take their corpus and mutations of it without a fault', { timeout: 240_000 }, async () => {
    const { all, exitCode } = await execa(FUZZ, ['--runs', `${RUNS}`], { all: true, reject: false })
    const expected = TARGETS.map((target) => expect.stringMatching(`^fuzz: ${target}: \\d{4,} inputs, no fault$`))
    expect([exitCode, all.split('\n').sort()]).toEqual([0, expect.arrayContaining(expected)])
  })
})
