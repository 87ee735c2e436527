/** Layers on another mount than their directory: in memory, or because the directory is a mount. Applied and undone all the same. */
import { existsSync, lstatSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { runCli } from '../support/cli.ts'
import { testWith } from '../support/needs.ts'
import { callers, uidOf } from '../support/users.ts'
import { holderOf, makePlace, type Place, runOutside, stoppedApply, treeOf } from './place.ts'

const FILES = 'd/ e/ e/deep/ file d/one d/two e/three e/deep/four e/link@three'

const SCRIPT = 'echo more >> file; echo new > new; rm d/two; rm -r e; mkdir n; echo x > n/x; chmod 700 d; ln -s a l'

describe.each(callers())('as %s', (user) => {
  describe('a layer in memory', () => {
    test('is applied, undone and applied again, and nothing of it stays in the directory', async () => {
      const place = await makePlace(user, FILES)
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

    test('is made where there is memory only, and its apply prepares nothing in the directory', async () => {
      const place = await makePlace(user, FILES)
      const { cow } = await place.run('echo new > new', '--cow-upper', 'memory')
      const id = cow?.id ?? ''
      expect((await execa('stat', ['-f', '-c', '%T', holderOf(place, id)])).stdout).toBe('tmpfs')
      const stages = () =>
        place.holders
          .flatMap((holder) => (existsSync(holder) ? readdirSync(holder) : []))
          .filter((name) => name.includes(id) && name !== id)
      const before = readdirSync(place.project)
      const applying = await stoppedApply(place, id, ['new'])
      expect([readdirSync(place.project), stages()]).toEqual([before, [`.stage-${id}-1-0`]])
      applying.goOn()
      expect([(await applying.ended).exitCode, stages()]).toEqual([0, []])
      expect(readFileSync(join(place.project, 'new'), 'utf8')).toBe('new\n')
    })
  })
})

/** Calls it with a separate file system at `outside`. */
async function onOwnMount(place: Place, use: () => Promise<void>): Promise<void> {
  const mode = place.user === 'plain' ? `uid=${uidOf('plain')},gid=${uidOf('plain')},mode=755` : 'mode=755'
  await execa('mount', ['-t', 'tmpfs', '-o', mode, 'none', place.outside])
  try {
    await use()
  } finally {
    await execa('umount', ['-l', place.outside])
  }
}

testWith(
  ['root', 'strace'],
  'what root prepares in a directory that is a mount is closed to a live sandbox',
  async () => {
    const place = await makePlace('root')
    const victim = join(place.project, 'victim')
    writeFileSync(victim, 'secret\n', { mode: 0o600 })
    await onOwnMount(place, async () => {
      const id = await runOutside(
        place,
        'mkdir -p new/aa .vscode; chmod 755 new/aa; echo REVIEWED > .vscode/tasks.json',
      )
      const paths = ['.vscode', '.vscode/tasks.json', 'new', 'new/aa']
      const applying = await stoppedApply(place, id, paths)
      const attack = `cd ${place.outside}; stage=$(echo .llm-do-*)
        for try in "ls $stage" "chmod 777 $stage" "cp /etc/hostname $stage/0/tasks.json" "mv $stage/1/aa x" "mv $stage moved"; do
          $try || echo refused
        done`
      const { stdout } = await place.cli('exec', '--rw', place.outside, '--', 'sh', '-c', attack)
      expect(stdout.toString()).toBe('refused\n'.repeat(5))
      applying.goOn()
      expect((await applying.ended).exitCode).toBe(0)
      expect(readFileSync(join(place.outside, '.vscode/tasks.json'), 'utf8')).toBe('REVIEWED\n')
      expect([victim, join(place.outside, 'new/aa')].map((path) => lstatSync(path).mode)).toEqual([0o100600, 0o40755])
      expect((await place.cli('undo', id)).status).toBe(0)
      expect(readdirSync(place.outside)).toEqual([])
      expect((await place.cli('discard', id)).status).toBe(0)
    })
  },
)

testWith(
  'root',
  'nothing is applied to a mount on which a user has no directory that sandboxes cannot write',
  async () => {
    const place = await makePlace('plain')
    await onOwnMount(place, async () => {
      const id = await runOutside(place, 'echo new > new')
      const { status, stderr } = await place.cli('apply', id)
      expect([status, stderr.toString()]).toEqual([125, expect.stringContaining('that sandboxes cannot write')])
      expect(readdirSync(place.outside)).toEqual([])
      // Control: with a place on that mount it is applied. The layer is found where it was.
      const state = join(place.outside, 'state')
      const own = { ...place.env, XDG_STATE_HOME: state }
      const words = [
        'exec',
        '--json',
        '--cow',
        join(place.outside, 'in'),
        '--',
        'sh',
        '-c',
        `echo new > ${place.outside}/in/new`,
      ]
      await execa('install', ['-d', '-o', String(uidOf('plain')), join(place.outside, 'in'), state])
      const run = (argv: readonly string[]) =>
        runCli(argv, { as: 'plain', program: 'llm-do', cwd: place.project, env: own })
      const { cow } = JSON.parse((await run(words)).stdout.toString()) as { cow: { id: string } }
      expect((await run(['apply', cow.id])).status).toBe(0)
      expect(readFileSync(join(place.outside, 'in/new'), 'utf8')).toBe('new\n')
      expect((await place.cli('discard', id)).status).toBe(0)
    })
  },
)

testWith('root', 'root has a directory of another user copy-on-write, and what is applied is that user’s', async () => {
  const place = await makePlace('root')
  writeFileSync(join(place.project, 'file'), 'file\n')
  await execa('chown', ['-R', `${uidOf('plain')}:${uidOf('plain')}`, place.project])
  const { cow, exitCode } = await place.run('echo more >> file; mkdir d; echo new > d/new')
  expect([exitCode, (await place.cli('apply', cow?.id ?? '')).status]).toEqual([0, 0])
  const names = ['file', 'd', 'd/new'].map((name) => lstatSync(join(place.project, name)).uid)
  expect([readFileSync(join(place.project, 'd/new'), 'utf8'), ...names]).toEqual([
    'new\n',
    ...names.map(() => uidOf('plain')),
  ])
})
