/** Kernels that lack a call the chain wants: it takes its other way with every protection, or refuses and says what is missing. */
import { writeFile } from 'node:fs/promises'
import { endianness } from 'node:os'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { statusValue } from '../../src/doctor/contract.ts'
import { superviseNamespace } from '../../src/supervisor/namespace.ts'
import { describeWith } from '../support/needs.ts'
import { ENGINES, makePlace, PROBE, sh } from './chain.ts'
import { planOnce } from './launch.ts'

/** asm-generic/unistd.h; calls that are newer than 5.0 have one number on all architectures. */
const MISSING = [
  { calls: 'clone3', numbers: [435] },
  { calls: 'close_range', numbers: [436] },
  { calls: 'openat2', numbers: [437] },
  { calls: 'mount_setattr', numbers: [442] },
  { calls: 'the Landlock calls', numbers: [444, 445, 446] },
  { calls: 'the new mount calls', numbers: [428, 429, 430, 431, 432] },
] as const

/** linux/filter.h: load a word, compare with a constant, return. */
const [LOAD, EQUAL, RETURN] = [0x20, 0x15, 0x06]
const [ALLOW, ENOSYS] = [0x7fff0000, 0x00050000 | 38]

/** Classic BPF: these numbers answer ENOSYS. */
function withoutCalls(numbers: readonly number[]): Buffer {
  const steps = [
    [LOAD, 0, 0, 0],
    ...numbers.map((number, index) => [EQUAL, numbers.length - index, 0, number]),
    [RETURN, 0, 0, ALLOW],
    [RETURN, 0, 0, ENOSYS],
  ] as const
  const bytes = Buffer.alloc(steps.length * 8)
  for (const [index, [code, yes, no, value]] of steps.entries()) {
    bytes.writeUInt16LE(code, index * 8)
    bytes.writeUInt8(yes, index * 8 + 2)
    bytes.writeUInt8(no, index * 8 + 3)
    bytes.writeUInt32LE(value, index * 8 + 4)
  }
  return bytes
}

/** Everything a weaker chain would show: capabilities, filter, masks, root, protected path, sockets in the zone. */
const LOOK = [
  'cat /proc/self/status',
  `${PROBE} kind /proc/kallsyms; ${PROBE} flags / /proc/sys /zone; ${PROBE} make-in /zone; ${PROBE} descriptors`,
  'mkdir /zone/.vscode && echo planted; echo x >/zone/made',
].join('\n')

function expectWalls(text: string): void {
  expect(statusValue(text, 'CapBnd')).toBe('0000000000000000')
  expect(statusValue(text, 'CapEff')).toBe('0000000000000000')
  expect(statusValue(text, 'NoNewPrivs')).toBe('1')
  expect(text).toContain('/proc/kallsyms null')
  expect(text).toContain('/ ro,nosuid,nodev')
  expect(text).toMatch(/^\/proc\/sys ro/m)
  expect(text).toContain('/zone rw,nosuid,nodev')
  expect(text).toContain('fifo EACCES')
  expect(text).toMatch(/^0\n1\n2$/m)
  expect(text).not.toContain('planted')
}

describeWith(['gcc', 'userns'], 'on a kernel without a call', () => {
  for (const engine of ENGINES) {
    test.each(MISSING)(`${engine}: without $calls the walls stand or the run is refused`, async ({ numbers }) => {
      expect(endianness()).toBe('LE')
      const place = await makePlace()
      const [filter, apply] = [join(place.base, 'filter'), join(place.base, 'apply-filter')]
      await writeFile(filter, withoutCalls(numbers))
      await execa('gcc', ['-O1', '-o', apply, join(import.meta.dirname, '../programs/apply-filter.c')])
      const launch = (await planOnce({ place, engine, command: sh(LOOK) })).launch()
      const outcome = await superviseNamespace({
        launch: { ...launch, file: apply, argv: [filter, launch.file, ...launch.argv] },
        stdio: { mode: 'capture', stdin: 'ignore', outputCap: null },
      })
      if (outcome.cause === 'setup') {
        expect(outcome.failure).toMatchObject({ errno: 'ENOSYS' })
        expect(outcome.failure?.step).not.toBe('')
      } else expectWalls(Buffer.from(outcome.stdout.head).toString())
    })
  }
})
