/**
 * A zone that is large enough for an index (native/lib/tree-index.h): what is made in it between two runs is covered, and what a run makes is
 * set aside, although no other directory is listed.
 */
import {
  appendFileSync,
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { ownDirectory } from '../../src/host/own-directory.ts'
import type { Result } from '../../src/report/result.ts'
import { runForResult } from '../support/cli.ts'
import { newDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'

/** Longer than a change counts as young (40 ms). */
const SETTLED_MS = 80

function makeRepository(directory: string): void {
  for (const name of ['objects', 'refs', 'hooks']) mkdirSync(join(directory, name), { recursive: true })
  writeFileSync(join(directory, 'HEAD'), 'ref: refs/heads/main\n')
  writeFileSync(join(directory, 'hooks/pre-commit'), '#!/bin/sh\n')
}

const paths = Array.from({ length: 100 }, (_, index) => `a${index % 10}/b${index}/c`)

describeWith('userns', 'a large writable zone', () => {
  test('hides nothing by the times of its directories', async () => {
    const uid = process.getuid?.() ?? 0
    const { path: zone, remove } = await newDirectory()
    for (const path of paths) mkdirSync(join(zone, path), { recursive: true })
    makeRepository(join(zone, 'a3/b3/c/old/.git'))
    const program = join(zone, 'a2/b2/c/program')
    writeFileSync(program, '')
    const settled = async (script: string): Promise<Result> => {
      await setTimeout(SETTLED_MS)
      return await runForResult(['--rw', '.', '--', 'sh', '-c', script], { cwd: zone })
    }
    await settled('true')
    expect((await settled('true')).reason).toBe('exit')
    const kept = join(ownDirectory(process.env, uid), 'trees')
    expect(readdirSync(kept)).not.toEqual([])

    // Between two runs, with the times of the directory set back.
    const there = join(zone, 'a5/b5/c')
    makeRepository(join(there, '.git'))
    utimesSync(there, 1, 1)
    const hooks = ['a3/b3/c/old/.git/hooks/pre-commit', 'a5/b5/c/.git/hooks/pre-commit']
    const refused = await settled(`for one in ${hooks.join(' ')}; do echo evil >>$one; done; true`)
    expect(refused.stderr.match(/Read-only file system/g)).toHaveLength(2)
    for (const hook of hooks) expect(readFileSync(join(zone, hook), 'utf8')).not.toContain('evil')

    // The host gives a hook another name: where little else has changed, and where so much that the index is made anew.
    for (const changes of [1, 20]) {
      for (const path of paths.slice(0, changes)) writeFileSync(join(zone, path, `new${changes}`), '')
      linkSync(join(zone, 'a5/b5/c/.git/hooks/pre-commit'), join(zone, `a8/b8/c/hook${changes}`))
      linkSync(program, join(zone, `a8/b8/c/other${changes}`))
      const { stderr } = await settled(`cd a8/b8/c; echo evil >>hook${changes}; echo x >>other${changes}; true`)
      expect(stderr.match(/Read-only file system/g)).toHaveLength(1)
      expect(readFileSync(join(zone, `a8/b8/c/hook${changes}`), 'utf8')).not.toContain('evil')
      expect(readFileSync(program, 'utf8')).toBe('x\n') // the control: an ordinary file
      writeFileSync(program, '')
    }

    // The same of a file that root's run must not write. The control: without its set-id bit it is written.
    const write = 'echo evil >>a2/b2/c/program; true'
    if (uid === 0) {
      chmodSync(program, 0o4755)
      expect((await settled(write)).stderr).toMatch(/Read-only file system/)
      expect(readFileSync(program, 'utf8')).toBe('')
      chmodSync(program, 0o755)
    }
    expect((await settled(write)).stderr).toBe('')
    expect(readFileSync(program, 'utf8')).toBe('evil\n')

    // By a run: a repository deep in the tree, and one without a name; the directory gets its old times.
    for (const made of ['.git', 'objects refs; echo ref: refs/heads/main >HEAD']) {
      const result = await settled(`cd a7/b7/c && mkdir -p ${made} && touch -d @1 . && sleep 0.1`)
      expect(result.reason).toBe('protected')
    }
    expect(existsSync(join(zone, 'a7/b7/c/.git'))).toBe(false)
    expect(existsSync(join(zone, 'a7/b7/c/HEAD'))).toBe(false)

    // The control: an ordinary file in the same place stays.
    expect((await settled('echo x >a7/b7/c/file')).reason).toBe('exit')
    appendFileSync(join(zone, 'a7/b7/c/file'), 'y')
    await remove()
  })

  test('that has become small leaves no index', async () => {
    const { path: zone, remove } = await newDirectory()
    const indexes = (): readonly string[] =>
      readdirSync(join(ownDirectory(process.env, process.getuid?.() ?? 0), 'trees')).filter((name) =>
        name.includes(`-${statSync(zone).ino.toString(16)}-`),
      )
    const settled = async (): Promise<void> => {
      await setTimeout(SETTLED_MS)
      expect((await runForResult(['--rw', '.', '--', 'true'], { cwd: zone })).reason).toBe('exit')
    }
    for (const path of paths) mkdirSync(join(zone, path), { recursive: true })
    await settled()
    expect(indexes()).toHaveLength(1)
    for (const name of readdirSync(zone)) rmSync(join(zone, name), { recursive: true })
    await settled()
    expect(indexes()).toEqual([])
    await remove()
  })
})
