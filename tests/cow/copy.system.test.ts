/** Copies in the place of overlays: the same promises, where nothing can be mounted over a directory. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import type { Change } from '../../src/cow/change.ts'
import { cliWords } from '../support/cli.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { currentUser } from '../support/users.ts'
import { inodesOf, makePlace, treeOf } from './place.ts'

const COPY = ['--cow-upper', 'copy']

const FILES = 'd/ d/deep/ kept/ file d/one d/deep/two kept/three link@d/one'

const byPath = (one: Change, other: Change): number => (one.path < other.path ? -1 : 1)
const EDIT = 'echo more >> file; rm -r d; mkdir n; echo x > n/x; chmod 700 kept; ln -sf n link'

const user = currentUser()

describe(`as ${user}`, () => {
  describeWith('python', 'a copied directory', () => {
    test('stays as it was until the changes are applied; they are those of an overlay', async () => {
      const place = await makePlace(user, FILES)
      const before = [treeOf(place.project), inodesOf(place.project)]
      const copied = await place.run(`${EDIT}; stat -f -c %T .`, ...COPY)
      const layered = await place.run(EDIT)
      expect(copied.stdout).not.toContain('overlay')
      expect([treeOf(place.project), inodesOf(place.project)]).toEqual(before)
      expect(copied.changes?.toSorted(byPath)).toEqual(layered.changes?.toSorted(byPath))
      const id = copied.cow?.id ?? ''
      expect((await place.cli('apply', id)).status).toBe(0)
      expect(readdirSync(place.project)).toEqual(['file', 'kept', 'link', 'n'])
      expect(await place.changes(id)).toEqual([])
      expect((await place.cli('undo', id)).status).toBe(0)
      expect(treeOf(place.project)).toEqual(before[0])
    })

    test('is gone on with, and leaves nothing where nothing was changed', async () => {
      const place = await makePlace(user, FILES)
      // A FIFO of the copy is separate: it leads to no process of the host, and does not count as a change.
      await execa('mkfifo', [join(place.project, 'fifo')])
      expect((await place.run('cat file', ...COPY)).cow).toBeUndefined()
      const { cow } = await place.run('echo more >> file', ...COPY)
      const words = ['exec', '--cow-continue', cow?.id ?? '', '--', 'sh', '-c', 'cat file; touch new']
      expect((await place.cli(...words)).stdout.toString()).toBe('file\nmore\n')
      expect((await place.changes(cow?.id ?? '')).map(({ path }) => path)).toEqual(['file', 'new'])
    })

    test('is refused before the command where the copy alone takes more than the changes may', async () => {
      const place = await makePlace(user)
      writeFileSync(join(place.project, 'big'), Buffer.alloc(3 * 2 ** 20, 'x'))
      const run = (size: string) =>
        place.cli('exec', ...COPY, '--cow-size', size, '--cow', '.', '--', 'sh', '-c', 'echo began')
      const { status, stdout, stderr } = await run('1m')
      expect([status, stdout.toString()]).toEqual([125, ''])
      expect(stderr.toString()).toMatch(/--cow-size/)
      expect((await place.cli('ps', '--cow')).stdout.toString()).not.toContain(place.project)
      expect((await run('8m')).stdout.toString()).toBe('began\n')
    })

    test('that the host changed, or moved a directory into, is a conflict there, also for what is in it', async () => {
      const place = await makePlace(user, FILES)
      const old = join(place.outside, 'old')
      mkdirSync(old)
      writeFileSync(join(old, 'inside'), 'of the host\n')
      await sleep(20) // file systems stamp changes with a clock of 4 ms
      const id = (await place.run('echo more >> file; echo x > n', ...COPY)).cow?.id ?? ''
      await sleep(20)
      renameSync(old, join(place.project, 'moved'))
      writeFileSync(join(place.project, 'file'), 'other\n')
      const { status, stderr } = await place.cli('apply', id)
      expect([status, stderr.toString()]).toEqual([3, expect.stringContaining('file')])
      expect((await place.cli('apply', id, 'moved/inside')).status).toBe(3)
      expect(readFileSync(join(place.project, 'file'), 'utf8')).toBe('other\n')
      expect(readFileSync(join(place.project, 'moved/inside'), 'utf8')).toBe('of the host\n')
      expect((await place.cli('apply', id, 'n')).status).toBe(0)
    })

    test('has no marks of overlay: what a command sets is an attribute, and is not obeyed', async () => {
      const place = await makePlace(user, FILES)
      const set =
        "import os; os.setxattr('d', 'user.overlay.opaque', b'y'); os.setxattr('kept', 'user.overlay.redirect', b'/d')"
      const { cow, exitCode } = await place.run(`python3 -c "${set}"; echo x > d/x`, ...COPY)
      expect(exitCode).toBe(0)
      expect((await place.changes(cow?.id ?? '')).map(({ path, kind }) => [path, kind])).toEqual([['d/x', 'added']])
    })

    test('is copied whole or not at all: a run that is stopped meanwhile leaves no layer', async () => {
      const place = await makePlace(user)
      for (let at = 0; at < 20; at += 1) symlinkSync('x', join(place.project, `link${at}`))
      const layers = () => (existsSync(place.layers) ? readdirSync(place.layers) : [])
      const before = new Set(layers())
      const made = () => layers().filter((name) => !before.has(name))
      // Each link takes long to be made again.
      const slow = ['strace', '-f', '-qq', '-o', '/dev/null', '-e', 'inject=symlinkat:delay_enter=300000']
      const [file = '', ...words] = cliWords(['exec', ...COPY, '--cow', '.', '--', 'true'], {
        as: user,
        program: 'llm-do',
        through: slow,
      })
      const env = { PATH: process.env.PATH, ...place.env }
      const child = spawn(file, words, { cwd: place.project, env, detached: true, stdio: 'ignore' })
      const ended = once(child, 'exit')
      while (!made().some((name) => existsSync(join(place.layers, name, 'zone.0/up')))) await sleep(20)
      process.kill(-(child.pid ?? 0), 'SIGTERM')
      await ended
      await expect.poll(made, { timeout: 10_000 }).toEqual([])
    })
  })
})

testWith('root', 'a directory on an overlay, over which no overlay on disk can be mounted, is copied', async () => {
  const place = await makePlace('root')
  const parts = ['lower', 'up', 'work'].map((name) => join(place.outside, name))
  for (const part of [...parts, join(place.outside, 'merged')]) mkdirSync(part)
  const [lower = '', up = '', work = ''] = parts
  writeFileSync(join(lower, 'file'), 'one\n')
  const merged = join(place.outside, 'merged')
  await execa('mount', ['-t', 'overlay', 'none', '-o', `lowerdir=${lower},upperdir=${up},workdir=${work}`, merged])
  try {
    const run = (...words: readonly string[]) =>
      place.cli('exec', ...words, '--cow', merged, '--', 'sh', '-c', `echo two >> ${merged}/file`)
    const { status, stderr } = await run(...COPY)
    const [, id = ''] = /llm-do diff (\w+)/.exec(stderr.toString()) ?? []
    expect([status, readFileSync(join(merged, 'file'), 'utf8')]).toEqual([0, 'one\n'])
    expect((await place.cli('apply', id)).status).toBe(0)
    expect(readFileSync(join(merged, 'file'), 'utf8')).toBe('one\ntwo\n')
    expect((await place.cli('discard', id)).status).toBe(0)
  } finally {
    await execa('umount', [merged])
  }
})
