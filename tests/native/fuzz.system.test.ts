/** The helpers' readers under sanitizers and mutations, and the helpers for another architecture. */
import { cp, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { writeLaunchFile } from '../../src/backend/launchfile.ts'
import { answerRecords } from '../../src/report/answer.ts'
import { makePlace } from '../escape/chain.ts'
import { planOnce } from '../escape/launch.ts'
import { plan } from '../report/fixtures.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'

const ROOT = join(import.meta.dirname, '../..')
const SOURCES = ['launchfile', 'record', 'placeholder', 'cgroup', 'fail', 'message', 'capture', 'result'].map((name) =>
  join(ROOT, 'native', `${name}.c`),
)
const COUNT = 20_000

async function realLaunchFile(directory: string): Promise<string> {
  const place = await makePlace()
  const planned = await planOnce({ place, engine: 'bwrap', command: ['/bin/true'] })
  const carried = planned.launch().descriptors.find(({ fd }) => fd === 3)
  if (carried?.carries !== 'bytes') throw new Error('no launch file on descriptor 3')
  const file = join(directory, 'launch-file')
  await writeFile(file, withAnswer(carried.bytes))
  return file
}

/** As in the launch cache: the records of front come before those of launch. */
function withAnswer(bytes: Uint8Array): Uint8Array {
  const answer = Buffer.from(writeLaunchFile(answerRecords(plan(), 'native')))
  return Buffer.concat([answer.subarray(0, -'end\0'.length), bytes.subarray('llm-do-launch-2\0'.length)])
}

const FLAGS = [
  ...['-g', '-O1', '-Wall', '-Wextra', '-Werror', '-D_GNU_SOURCE='],
  ...['-fsanitize=address,undefined', '-fno-sanitize-recover=all'],
]

describeWith(['gcc', 'bwrap', 'userns'], 'the readers of the native helpers', () => {
  test('refuse or understand every mutation of a launch file', { timeout: 120_000 }, async () => {
    const directory = await temporaryDirectory()
    const program = join(directory, 'fuzz')
    await execa('gcc', [...FLAGS, '-o', program, join(import.meta.dirname, 'fuzz.c'), ...SOURCES])
    const file = await realLaunchFile(directory)
    for (const seed of [1, 2, 3]) {
      const { stdout } = await execa(program, [file, `${COUNT}`, `${seed}`])
      const [accepted = 0, answers = 0] = stdout.match(/\d+/g)?.map(Number) ?? []
      expect(accepted).toBeGreaterThan(0)
      expect(accepted).toBeLessThan(COUNT)
      expect(answers).toBeGreaterThan(0)
      expect(answers).toBeLessThan(accepted)
    }
  })

  test('take no word that is not there', async () => {
    const directory = await temporaryDirectory()
    const file = await realLaunchFile(directory)
    const bytes = await readFile(file)
    expect(bytes.subarray(0, 16).toString()).toBe('llm-do-launch-2\0')
    expect(bytes.subarray(-5).toString()).toBe('\0end\0')
  })
})

describeWith('aarch64-cc', 'a cross compiler', () => {
  test('builds every helper for aarch64', { timeout: 120_000 }, async () => {
    const directory = await temporaryDirectory()
    await cp(join(ROOT, 'native'), join(directory, 'native'), { recursive: true })
    for (const name of ['Makefile', 'package.json', 'package-lock.json'])
      await cp(join(ROOT, name), join(directory, name))
    await symlink(join(ROOT, 'node_modules'), join(directory, 'node_modules'))
    await execa('make', ['native', 'CC=aarch64-linux-gnu-gcc'], { cwd: directory })
    for (const name of ['launch', 'init', 'runs', 'probe']) {
      const header = (await readFile(join(directory, 'bin', name))).subarray(0, 20)
      expect(header.readUInt16LE(18), name).toBe(183) // EM_AARCH64 of elf.h
    }
  })
})
