/** Layers on another mount than their directory: in memory, or because the directory is a mount. Applied and undone all the same. */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { lchown, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { testWith } from '../support/needs.ts'
import { callers, uidOf } from '../support/users.ts'
import { makePlace, type Place, treeOf } from './place.ts'

async function fill({ project, user }: Place): Promise<void> {
  for (const name of ['d', 'e', 'e/deep']) mkdirSync(join(project, name))
  const files = ['file', 'd/one', 'd/two', 'e/three', 'e/deep/four']
  for (const name of files) writeFileSync(join(project, name), `${name}\n`)
  symlinkSync('three', join(project, 'e/link'))
  if (user === 'plain')
    for (const name of ['d', 'e', 'e/deep', 'e/link', ...files])
      await lchown(join(project, name), uidOf(user), uidOf(user))
}

const SCRIPT = 'echo more >> file; echo new > new; rm d/two; rm -r e; mkdir n; echo x > n/x; chmod 700 d; ln -s a l'

/** The directory of layers that has it. */
const holderOf = (place: Place, id: string): string =>
  place.holders.find((directory) => existsSync(join(directory, id))) ?? ''

describe.each(callers())('as %s', (user) => {
  describe('a layer in memory', () => {
    test('is applied, undone and applied again, and nothing of it stays in the directory', async () => {
      const place = await makePlace(user)
      await fill(place)
      const before = treeOf(place.project)
      const { cow } = await place.run(SCRIPT, '--cow-upper', 'memory')
      const id = cow?.id ?? ''
      const apply = async () => {
        expect((await place.cli('apply', id)).stderr.toString()).toMatch(/^llm-do: \d+ applied; /)
        expect(readFileSync(join(place.project, 'file'), 'utf8')).toBe('file\nmore\n')
        expect(readdirSync(place.project).toSorted()).toEqual(['d', 'file', 'l', 'n', 'new'])
      }
      await apply()
      expect((await place.cli('undo', id)).status).toBe(0)
      expect(treeOf(place.project)).toEqual(before)
      await apply()
    })

    test('is made where there is memory only, and is refused where a name is in the way of its apply', async () => {
      const place = await makePlace(user)
      await fill(place)
      const { cow } = await place.run('echo new > new', '--cow-upper', 'memory')
      const id = cow?.id ?? ''
      const holder = holderOf(place, id)
      expect((await execa('stat', ['-f', '-c', '%T', holder])).stdout).toBe('tmpfs')
      const staged = join(place.project, `.llm-do-${id}-1`)
      await mkdir(staged, { mode: 0o755 })
      const { status, stderr } = await place.cli('apply', id)
      expect([status, stderr.toString()]).toEqual([125, expect.stringContaining('LAYER_FAILED')])
      expect(existsSync(join(place.project, 'new'))).toBe(false)
      // A link in its place is not followed, either.
      renameSync(staged, join(place.outside, 'was'))
      symlinkSync(place.outside, staged)
      const outside = treeOf(place.outside)
      expect((await place.cli('apply', id)).status).toBe(125)
      expect(treeOf(place.outside)).toEqual(outside)
      // Control: without it the same is applied.
      await execa('rm', [staged])
      expect((await place.cli('apply', id)).status).toBe(0)
      expect(readFileSync(join(place.project, 'new'), 'utf8')).toBe('new\n')
    })
  })
})

testWith('root', 'a directory that is a mount is applied to and undone', async () => {
  const place = await makePlace('root')
  await execa('mount', ['-t', 'tmpfs', 'none', place.outside])
  try {
    writeFileSync(join(place.outside, 'file'), 'one\n', { mode: 0o600 })
    await execa('chmod', ['4711', join(place.outside, 'file')])
    const before = treeOf(place.outside)
    const script = `cd ${place.outside}; cat file > copy; echo two >> copy; mv copy file; echo new > new`
    const { stdout } = await place.cli('exec', '--json', '--cow', place.outside, '--', 'sh', '-c', script)
    const { id } = (JSON.parse(stdout.toString()) as { cow: { id: string } }).cow
    expect((await place.cli('apply', id)).status).toBe(0)
    expect(readdirSync(place.outside)).toEqual(['file', 'new'])
    // Set-id bits do not cross; what was there has them again after the undo.
    expect((await place.cli('undo', id)).status).toBe(0)
    expect(treeOf(place.outside)).toEqual(before)
    expect((await place.cli('discard', id)).status).toBe(0)
  } finally {
    await execa('umount', [place.outside])
  }
})
