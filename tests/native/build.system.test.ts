/** What the native programs are given to read, and the programs for another architecture. */
import { cp, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { makeTestSite } from '../escape/chain.ts'
import { planOnce } from '../escape/launch.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'

const ROOT = join(import.meta.dirname, '../..')
async function realLaunchFile(directory: string): Promise<string> {
  const site = await makeTestSite()
  const planned = await planOnce({ site, engine: 'bwrap', command: ['/bin/true'] })
  const carried = planned.launch().descriptors.find(({ fd }) => fd === 3)
  if (carried?.carries !== 'bytes') throw new Error('no launch file on descriptor 3')
  const file = join(directory, 'launch-file')
  await writeFile(file, carried.bytes)
  return file
}

describeWith(['bwrap', 'userns'], 'a launch file', () => {
  test('has a beginning and an end', async () => {
    const directory = await temporaryDirectory()
    const file = await realLaunchFile(directory)
    const bytes = await readFile(file)
    expect(bytes.subarray(0, 16).toString()).toBe('llm-do-launch-2\0')
    expect(bytes.subarray(-5).toString()).toBe('\0end\0')
  })
})

describeWith('aarch64-cc', 'a cross compiler', () => {
  test('builds every native program for aarch64', { timeout: 120_000 }, async () => {
    const directory = await temporaryDirectory()
    await cp(join(ROOT, 'native'), join(directory, 'native'), { recursive: true })
    for (const name of ['Makefile', 'package.json', 'package-lock.json'])
      await cp(join(ROOT, name), join(directory, name))
    await symlink(join(ROOT, 'node_modules'), join(directory, 'node_modules'))
    await execa('make', ['native', 'CC=aarch64-linux-gnu-gcc'], { cwd: directory })
    for (const name of ['launch', 'init', 'net', 'runs', 'probe']) {
      const header = (await readFile(join(directory, 'bin', name))).subarray(0, 20)
      expect(header.readUInt16LE(18), name).toBe(183) // EM_AARCH64 of elf.h
    }
  })
})
