/** The corpus of `make fuzz` through every parser of the native part, under ASan and UBSan; mutations of it are in fuzz.deep.system.test.ts. */
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { corpusOf, FUZZ, TARGETS } from './targets.ts'

test('the parsers of the native part take their corpus without a fault', async () => {
  const { all, exitCode } = await execa(FUZZ, ['--corpus'], { all: true, reject: false })
  const expected = TARGETS.map((target) => `fuzz: ${target}: ${corpusOf(target).length} inputs, no fault`)
  expect([exitCode, all.split('\n').sort()]).toEqual([0, expected])
})
