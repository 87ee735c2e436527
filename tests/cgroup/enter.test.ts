import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { enterAndAsk, enterByShell } from '../../src/cgroup/enter.ts'
import { temporaryDirectory } from '../support/directory.ts'

/** A directory with the one file that is written to: what the kernel would do is not asked here. */
async function newGroup(): Promise<string> {
  const group = join(await temporaryDirectory(), 'group')
  await mkdir(group)
  await writeFile(join(group, 'cgroup.procs'), '')
  return group
}
const moved = (group: string): Promise<string> => readFile(join(group, 'cgroup.procs'), 'utf8')

test('A process moves itself, and only then is the program that is asked', async () => {
  const group = await newGroup()
  const asked = ['/bin/sh', '-c', 'printf "%s:" "$@"; cat "$1/cgroup.procs"', 'sh', group, 'a b']
  expect(await enterAndAsk(group, asked)).toEqual({ refused: undefined, told: `${group}:a b:0\n` })
})

test('A process that cannot be moved asks nothing, and says why', async () => {
  const place = await temporaryDirectory()
  const { refused, told } = await enterAndAsk(join(place, 'gone'), ['/bin/sh', '-c', `touch ${place}/asked; echo 7`])
  expect(refused).toMatch(/.+/)
  expect(told).toBe('')
  await expect(readFile(join(place, 'asked'))).rejects.toMatchObject({ code: 'ENOENT' })
  expect(await enterByShell(join(place, 'gone'))).toBe(refused)
})

test.each([
  ['cannot be started', ['/nonexistent/launch']],
  ['fails', ['/bin/false']],
])('It was moved, though the program that was asked %s', async (_title, question) => {
  const group = await newGroup()
  expect(await enterAndAsk(group, question)).toEqual({ refused: undefined, told: '' })
  expect(await moved(group)).toBe('0\n')
})

test('A shell moves without asking anything', async () => {
  const group = await newGroup()
  expect(await enterByShell(group)).toBeUndefined()
  expect(await moved(group)).toBe('0\n')
})
