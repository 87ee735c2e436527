import { execFileSync } from 'node:child_process'
import { chmodSync, linkSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { observePaths, observeRounds } from '../../src/host/paths.ts'

const root = realpathSync(mkdtempSync(join(tmpdir(), 'llm-do-paths-')))
const at = (name: string): string => join(root, name)
const server: Server = createServer()
const ODD = 'new\nline, colon: ünïcode'

beforeAll(async () => {
  mkdirSync(at('directory/inner'), { recursive: true })
  writeFileSync(at('file'), 'x', { mode: 0o640 })
  chmodSync(at('file'), 0o4640)
  writeFileSync(at(ODD), '')
  mkdirSync(at('closed'), { mode: 0o700 })
  writeFileSync(at('closed/file'), '')
  writeFileSync(at('named twice'), '')
  linkSync(at('named twice'), at('second name'))
  symlinkSync('file', at('link'))
  symlinkSync('directory', at('way'))
  symlinkSync('gone', at('dangling'))
  symlinkSync('loop-b', at('loop-a'))
  symlinkSync('loop-a', at('loop-b'))
  execFileSync('mkfifo', [at('fifo')])
  await new Promise<void>((resolve) => server.listen(at('socket'), resolve))
})

afterAll(async () => {
  await new Promise((resolve) => server.close(resolve))
  rmSync(root, { recursive: true, force: true })
})

/** Root may see everything, so root becomes another user for the moment; a plain user closes the directory to himself. */
function asPlainUser<T>(act: () => T): T {
  const isRoot = process.geteuid?.() === 0
  chmodSync(root, 0o755)
  if (isRoot) process.seteuid?.(65_534)
  else chmodSync(at('closed'), 0)
  try {
    return act()
  } finally {
    if (isRoot) process.seteuid?.(0)
    else chmodSync(at('closed'), 0o700)
  }
}

describe('Looking at a path finds', () => {
  test.each<[title: string, name: string, kind: string, real: string]>([
    ['a file', 'file', 'file', 'file'],
    ['a directory', 'directory', 'directory', 'directory'],
    ['a file behind a link', 'link', 'file', 'file'],
    ['a directory behind a linked parent', 'way/inner', 'directory', 'directory/inner'],
    ['a FIFO, without waiting for a writer', 'fifo', 'fifo', 'fifo'],
    ['a socket', 'socket', 'socket', 'socket'],
    ['nothing', 'gone', 'missing', 'gone'],
    ['nothing, deep below what is missing', 'gone/a/b', 'missing', 'gone/a/b'],
    ['nothing, below a linked directory', 'way/gone', 'missing', 'directory/gone'],
    ['nothing, below a file', 'file/x', 'missing', 'file/x'],
    ['nothing, behind a link', 'dangling', 'missing', 'dangling'],
    ['a circle of links', 'loop-a', 'loop', 'loop-a'],
    ['a file of an odd name', ODD, 'file', ODD],
    ['nothing under a name that is too long', 'n'.repeat(300), 'missing', 'n'.repeat(300)],
  ])('%s', async (_title, name, kind, real) => {
    const facts = observePaths([at(name)])
    expect(facts[at(name)]).toMatchObject({ path: at(name), kind, real: at(real) })
  })

  test('the text of a link, and whose file and inode it leads to', async () => {
    const facts = observePaths([at('link'), at('file')])
    const identity = expect.stringMatching(`^[0-9:]+>${facts[at('file')]?.identity}$`)
    expect(facts[at('link')]).toEqual({ ...facts[at('file')], path: at('link'), link: 'file', identity })
    expect(facts[at('file')]).toMatchObject({ uid: process.getuid?.(), mode: 0o4640 })
    expect(facts[at('file')]?.ino).toBeGreaterThan(0)
  })

  test('how many names a file has, where there is more than one', () => {
    const seen = observePaths([at('file'), at('named twice'), at('second name'), at('directory')])
    expect(Object.values(seen).map(({ names }) => names)).toEqual([undefined, 2, 2, undefined])
  })

  test('a device, and the root', async () => {
    const facts = observePaths(['/dev/null', '/'])
    expect(facts['/dev/null']?.kind).toBe('device')
    expect(facts['/']).toMatchObject({ kind: 'directory', real: '/' })
  })

  test('nothing at a path that no path can be, instead of throwing', async () => {
    expect(observePaths(['/a\0b'])['/a\0b']).toMatchObject({ kind: 'missing' })
  })

  test('a path behind a closed directory denied to a plain user, and seen by its owner', () => {
    const look = () => Object.values(observePaths([at('file'), at('closed/file')])).map(({ kind }) => kind)
    expect(look()).toEqual(['file', 'file'])
    expect(asPlainUser(look)).toEqual(['file', 'denied'])
  })
})

test('Looking goes on while the answers raise questions, and ends', async () => {
  const seen = observeRounds([at('link')], (facts) => Object.values(facts).map(({ real }) => real))
  expect(Object.keys(seen)).toEqual([at('link'), at('file')])
  const endless = observeRounds(['/0'], (facts) => [`/${Object.keys(facts).length}`])
  expect(Object.keys(endless)).toHaveLength(49)
})
