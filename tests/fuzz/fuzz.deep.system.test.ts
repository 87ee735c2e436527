/** Every parser of the native part under libFuzzer, ASan and UBSan: its corpus, and the same new inputs each time. `make fuzz` takes longer. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { describeWith } from '../support/needs.ts'

const ROOT = join(import.meta.dirname, '../..')
const RUNS = 5000

describeWith('libfuzzer', 'the parsers of the native part', () => {
  test('take their corpus and mutations of it without a fault', { timeout: 240_000 }, async () => {
    const targets = (await readdir(import.meta.dirname)).filter((file) => file.endsWith('.c'))
    const { all, exitCode } = await execa(join(ROOT, 'scripts/fuzz'), ['--runs', `${RUNS}`], {
      all: true,
      reject: false,
    })
    const expected = targets.map((file) =>
      expect.stringMatching(new RegExp(`^fuzz: ${file.slice(0, -2)}: \\d{4,} inputs, no fault$`)),
    )
    expect([exitCode, all.split('\n').sort()]).toEqual([0, expect.arrayContaining(expected)])
  })
})
