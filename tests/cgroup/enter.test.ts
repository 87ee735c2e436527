import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { enterByShell } from '../../src/cgroup/enter.ts'
import { temporaryDirectory } from '../support/directory.ts'

test('A shell moves itself, and says why it could not', async () => {
  const group = join(await temporaryDirectory(), 'group')
  expect(await enterByShell(group)).toEqual({ why: expect.stringMatching(/.+/), isPassing: false })
  await mkdir(group)
  await writeFile(join(group, 'cgroup.procs'), '')
  expect(await enterByShell(group)).toBeUndefined()
  expect(await readFile(join(group, 'cgroup.procs'), 'utf8')).toBe('0\n')
})
