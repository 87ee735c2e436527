/** What the native programs are given to read. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeTestSite } from '../escape/chain.ts'
import { planOnce } from '../escape/launch.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'

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
