/** A disk that fills up, under the layer or under the directory: an error that says so, and nothing is lost or half done. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Result } from '../../src/report/result.ts'
import { describeWith } from '../support/needs.ts'
import { makePlace, type Place, treeOf } from './place.ts'

const MIB = 2 ** 20

/** A place whose directory, or whose layers, are on a separate small file system, which no other process sees. */
interface Small {
  readonly cli: Place['cli']
  /** A path of the place, as this process reaches it. */
  readonly at: (path: string) => string
  /** Takes all that is left of the file system. */
  readonly fill: () => void
  readonly empty: () => void
}

async function onSmallDisk(place: Place, directory: string): Promise<Small> {
  // The project is a separate file system in any case: else its layers would be next to it.
  const mounts = new Set([place.project, directory])
  const mount = `mkdir -p "$place" && mount -t tmpfs -o size=8m,mode=700 none "$place"`
  const script = `for place; do ${mount}; done && echo && exec sleep 1d`
  const words = ['--mount', 'sh', '-ec', script, 'sh', ...mounts]
  const holder = spawn('unshare', words, { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void holder.kill('SIGKILL'))
  await once(holder.stdout, 'data')
  const at: Small['at'] = (path) => `/proc/${holder.pid}/root${path}`
  const junk = at(join(directory, 'junk'))
  const enter = ['nsenter', '--target', `${holder.pid}`, '--mount', '--']
  const fill = (): void => {
    for (const bytes of [MIB, 4096])
      for (let name = 0; ; name += 1) if (!isWritten(`${junk}${bytes}.${name}`, bytes)) break
  }
  return {
    cli: (...words) => place.cliThrough([...enter, 'sh', '-c', 'cd "$0" && exec "$@"', place.project], ...words),
    at,
    fill,
    empty: () => {
      for (const name of readdirSync(at(directory))) if (name.startsWith('junk')) rmSync(at(join(directory, name)))
    },
  }
}

function isWritten(path: string, bytes: number): boolean {
  try {
    writeFileSync(path, Buffer.alloc(bytes))
    return true
  } catch {
    rmSync(path, { force: true })
    return false
  }
}

const FULL = /LAYER_FAILED.*No space left on device/

function fillProject(place: Place, { at }: Small): void {
  for (const name of ['one', 'two']) writeFileSync(join(at(place.project), name), Buffer.alloc(MIB, name))
}

async function ran({ cli }: Small, script: string): Promise<Result & { readonly id: string }> {
  const { stdout } = await cli('exec', '--json', '--cow', '.', '--', 'sh', '-c', script)
  const result = JSON.parse(stdout.toString()) as Result
  return { ...result, id: result.cow?.id ?? '' }
}

const ended = async (cli: Place['cli'], ...words: readonly string[]) => {
  const { status, stderr } = await cli(...words)
  return [status, stderr.toString()]
}

/** Replaces two files, and adds one. */
const EDIT = 'head -c 1048576 /dev/zero > one; head -c 1048576 /dev/urandom > two; cp two three'

describeWith('root', 'a disk that is full', () => {
  describe('of the layers', () => {
    test('is an error of the command, of diff and of apply, and the directory stays what it was', async () => {
      const place = await makePlace('root')
      const small = await onSmallDisk(place, dirname(place.layers))
      fillProject(place, small)
      const before = treeOf(small.at(place.project))
      const { id, exitCode, stderr } = await ran(small, `${EDIT}; head -c 20000000 /dev/zero > many`)
      expect([exitCode, stderr]).toEqual([1, expect.stringContaining('No space left on device')])
      expect(await ended(small.cli, 'discard', id)).toEqual([0, expect.stringContaining('were discarded')])

      const { id: other } = await ran(small, EDIT)
      small.fill()
      for (const verb of ['diff', 'apply'])
        expect(await ended(small.cli, verb, other)).toEqual([125, expect.stringMatching(FULL)])
      expect(treeOf(small.at(place.project))).toEqual(before)
      small.empty()
      expect((await small.cli('apply', other)).status).toBe(0)
      const applied = treeOf(small.at(place.project))
      expect(applied).not.toEqual(before)
      small.fill()
      await small.cli('undo', other)
      expect([before, applied]).toContainEqual(treeOf(small.at(place.project)))
      small.empty()
      await small.cli('undo', other)
      expect(treeOf(small.at(place.project))).toEqual(before)
    })
  })

  describe('of the directory', () => {
    test('refuses the apply and the undo whole, which are done when there is room', async () => {
      const place = await makePlace('root')
      const small = await onSmallDisk(place, place.project)
      fillProject(place, small)
      const before = treeOf(small.at(place.project))
      const { id } = await ran(small, EDIT)
      small.fill()
      const full = treeOf(small.at(place.project))
      expect(await ended(small.cli, 'apply', id)).toEqual([125, expect.stringMatching(FULL)])
      expect(treeOf(small.at(place.project))).toEqual(full)
      small.empty()
      expect((await small.cli('apply', id)).status).toBe(0)
      const applied = treeOf(small.at(place.project))
      small.fill()
      expect(await ended(small.cli, 'undo', id)).toEqual([125, expect.stringMatching(FULL)])
      small.empty()
      expect(treeOf(small.at(place.project))).toEqual(applied)
      expect((await small.cli('undo', id)).status).toBe(0)
      expect(treeOf(small.at(place.project))).toEqual(before)
    })
  })
})
