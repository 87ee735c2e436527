/** Layers on disk: who may use one when, what is refused by name, and that no command reaches them. */
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import type { Result } from '../../src/report/result.ts'
import { until } from '../pool/pool.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { testWith } from '../support/needs.ts'
import { becoming, currentUser, uidOf } from '../support/users.ts'
import { helperFor, makePlace, type Place, runOutside, runtimeOf } from './place.ts'

const refusal = async (place: Place, ...words: readonly string[]) => {
  const { status, stderr } = await place.cli(...words)
  return [status, stderr.toString().split('\n')[0]]
}

const user = currentUser()

/**
 * Words of a program behind which a run sees no layer of another test: all of root's lie in one directory, and a layer that is deeper
 * than any path cannot be shown.
 */
async function apartFromOthers(): Promise<readonly string[]> {
  if (user !== 'root') return []
  const script = 'mkdir -p /var/lib/llm-do; mount --bind "$0" /var/lib/llm-do; exec "$@"'
  return ['unshare', '--mount', 'sh', '-ec', script, await temporaryDirectory()]
}

describe(`as ${user}`, () => {
  describe('a layer', () => {
    test('of a run that is not over is in use', async () => {
      const place = await makePlace(user)
      const before = existsSync(place.layers) ? readdirSync(place.layers) : []
      const [begun, ended] = ['begun', 'ended'].map((name) => join(place.outside, name)) as [string, string]
      const script = `echo x > x; touch ${begun}; until [ -e ${ended} ]; do sleep 0.05; done`
      const running = place.run(script, '--rw', place.outside)
      await until(async () => (existsSync(begun) ? true : undefined), 'the start of the command')
      const id = readdirSync(place.layers).find((name) => !before.includes(name)) ?? ''
      for (const verb of ['changes', 'apply', 'discard'])
        expect(await refusal(place, verb, id)).toEqual([125, expect.stringContaining('LAYER_BUSY')])
      writeFileSync(ended, '')
      expect((await running).cow?.id).toBe(id)
      expect((await place.cli('apply', id)).status).toBe(0)
    })

    test('of the present directory is what a verb without ID is about, also where another is newer', async () => {
      const place = await makePlace(user)
      await place.run('touch here')
      const elsewhere = ['exec', '--cow', `${place.outside}:/elsewhere`, '--', 'touch', '/elsewhere/there']
      expect((await place.cli(...elsewhere)).status).toBe(0)
      for (const verb of ['changes', 'diff'])
        expect((await place.cli(verb)).stdout.toString()).toMatch(/^(?!.*there)[\s\S]*here/)
    })

    test('of the present directory is meant by paths alone, also by one that could begin its ID', async () => {
      const place = await makePlace(user)
      const id = (await place.run('touch 0 1 2 3 4 5 6 7 8 9 a b c d e f other')).cow?.id ?? ''
      const path = id.slice(0, 1)
      expect((await place.cli('apply', path, 'other')).status).toBe(0)
      expect(readdirSync(place.project)).toEqual([path, 'other'])
      expect(await refusal(place, 'apply', 'nosuch')).toEqual([125, expect.stringContaining('LAYER_NOT_FOUND')])
      expect((await place.cli('apply', id.slice(0, 8))).status).toBe(0)
      expect(readdirSync(place.project)).toHaveLength(17)
    })

    test('is not applied twice, nor twice undone', async () => {
      const place = await makePlace(user)
      const id = (await place.run('echo x > x; mkdir y; echo z > y/z')).cow?.id ?? ''
      const [file = '', ...words] = [...becoming(user), ...helperFor(user), 'apply', place.layers, id]
      const apply = async () =>
        (await execa(file, words, { env: runtimeOf(place), input: '' })).stdout.split('\0').slice(0, 2)
      expect([await apply(), await apply()]).toEqual([
        ['applied', '3'],
        ['applied', '0'],
      ])
      expect(readdirSync(place.project)).toEqual(['x', 'y'])
      // An apply without changes has nothing that an undo takes back.
      expect((await place.cli('undo', id)).status).toBe(0)
      expect(readdirSync(place.project)).toEqual([])
    })

    test('that is damaged, foreign or not there is refused, and can be thrown away', async () => {
      const place = await makePlace(user)
      const id = (await place.run('echo x > x')).cow?.id ?? ''
      expect(await refusal(place, 'apply', 'nothere0')).toEqual([125, expect.stringContaining('LAYER_NOT_FOUND')])
      expect(await refusal(place, 'undo', '../x')).toEqual([125, expect.stringContaining('LAYER_NOT_FOUND')])
      // The files at the end of the run show which ones the host has removed since.
      const notes = join(place.layers, id, 'notes')
      renameSync(notes, `${notes}.was`)
      mkdirSync(notes)
      expect(await refusal(place, 'apply', id)).toEqual([125, expect.stringContaining('cannot be read: notes: ')])
      rmSync(notes, { recursive: true })
      renameSync(`${notes}.was`, notes)
      expect(await place.changes(id)).toHaveLength(1)
      truncateSync(join(place.layers, id, 'record'), 100)
      expect(await refusal(place, 'apply', id)).toEqual([125, expect.stringContaining('missing or damaged')])
      expect((await place.cli('discard', '--force', id)).status).toBe(0)
      expect(existsSync(join(place.layers, id))).toBe(false)
    })

    test('can be thrown away when its directory is gone', async () => {
      const place = await makePlace(user)
      await mkdir(join(place.outside, 'gone'), { mode: 0o777 })
      const id = await runOutside(place, 'echo x > x')
      rmSync(place.outside, { recursive: true })
      expect(await refusal(place, 'changes', id)).toEqual([
        125,
        expect.stringContaining('was moved, removed or replaced'),
      ])
      expect((await place.cli('discard', id)).status).toBe(0)
      expect(existsSync(join(place.layers, id))).toBe(false)
    })

    test('is not for commands to change, where a zone would show it', async () => {
      const { layers, project, cliThrough } = await makePlace(user)
      const through = await apartFromOthers()
      const made = await cliThrough(through, 'exec', '--json', '--cow', '.', '--', 'sh', '-c', 'echo x > x')
      const id = (JSON.parse(made.stdout.toString()) as Result).cow?.id ?? ''
      const holder = user === 'root' ? '/var/lib/llm-do' : join(layers, '../..')
      const script = `find ${layers} -name x; echo planted > ${join(layers, id, 'zone.0/up/x')}`
      const { status, stdout, stderr } = await cliThrough(through, 'exec', '--rw', holder, '--', 'sh', '-c', script)
      expect([status, stderr.toString()]).toEqual([2, expect.stringContaining('Read-only file system')])
      // Control: it is there.
      expect(stdout.toString()).toContain(id)
      expect((await cliThrough(through, 'apply', id)).status).toBe(0)
      expect((await execa('cat', [join(project, 'x')])).stdout).toBe('x')
    })
  })

  describe('a run', () => {
    test('applies by itself what a command that succeeded has changed', async () => {
      const place = await makePlace(user)
      const done = await place.run('echo x > x; echo y > .envrc', '--apply', 'on-success')
      expect(done.cow).toMatchObject({
        applied: { applied: 1, protected: ['.envrc'] },
        message: expect.stringMatching(/^1 applied, 1 left out/),
      })
      const failed = await place.run('echo y > y; exit 1', '--apply=on-success')
      expect([failed.cow?.applied, readdirSync(place.project)]).toEqual([undefined, ['x']])
    })

    test('of a file is refused: a layer is of a directory', async () => {
      const place = await makePlace(user)
      writeFileSync(join(place.project, 'file'), '')
      expect(await refusal(place, 'exec', '--cow', 'file', '--', 'true')).toEqual([
        125,
        expect.stringMatching(/ZONE_INVALID.*expected a directory/),
      ])
    })
  })
})

testWith(['root', 'plain-user'], 'a directory of layers that another user has made is none', async () => {
  const place = await makePlace('plain')
  const taken = `/var/tmp/llm-do-${uidOf('plain')}`
  rmSync(taken, { recursive: true, force: true }) // Left by a test that was killed.
  const id = (await place.run('echo x > x')).cow?.id ?? ''
  expect(existsSync(taken)).toBe(false)
  try {
    await mkdir(join(taken, 'cow'), { recursive: true })
    await execa('cp', ['-r', join(place.layers, id), join(taken, 'cow/forged')])
    await execa('chmod', ['-R', 'a+rX', taken])
    const { stdout } = await place.cli('ps', '--cow', '--json')
    expect((JSON.parse(stdout.toString()) as { id: string }[]).map((one) => one.id)).toEqual([id])
    expect(await refusal(place, 'apply', 'forged')).toEqual([125, expect.stringContaining('LAYER_NOT_FOUND')])
  } finally {
    rmSync(taken, { recursive: true, force: true })
  }
})

testWith('root', 'a mount below a copy-on-write directory is refused by its name', async () => {
  const place = await makePlace('root')
  const point = join(place.project, 'mnt')
  await mkdir(point)
  await execa('mount', ['-t', 'tmpfs', 'none', point])
  try {
    expect(await refusal(place, 'exec', '--cow', '.', '--', 'true')).toEqual([125, expect.stringContaining(point)])
  } finally {
    await execa('umount', [point])
  }
  expect((await place.cli('exec', '--cow', '.', '--', 'true')).status).toBe(0)
})
