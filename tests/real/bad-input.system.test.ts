/**
 * Refusals because of broken surroundings: the code, the status, a hint, and nothing started or made. tests/cli/refusals.md has the
 * refusals of the command line as text.
 */
import { chmod, mkdir, readdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import { shellWord } from '../../src/report/hints.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { expectNothingLeft, newMark, takeSnapshot } from '../support/leftovers.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { directoryWith, type Files, runForText } from './directory.ts'
import { runHere, textHere } from './in-process.ts'

const REFUSED: readonly (readonly [title: string, Files, argv: readonly string[], code: string, message: RegExp])[] = [
  ['a missing zone', {}, ['--ro', './none', '--', 'true'], 'ZONE_INVALID', /none: it does not exist/],
  [
    'a file for a directory',
    { file: 'x' },
    ['--rw', './file/', '--', 'true'],
    'ZONE_INVALID',
    /expected a directory, got/,
  ],
  ['a target that is /etc', { 'd/a': 'x' }, ['--ro', 'd:/etc', '--', 'true'], 'ZONE_INVALID', /\/etc/],
  ['a target through a file', { file: '' }, ['--', './file/x'], 'COMMAND_NOT_FOUND', /not a directory/],
  ['a command that does not exist', {}, ['--rw', '.', '--', './nope'], 'COMMAND_NOT_FOUND', /\.\/nope: not found/],
  [
    'a missing interpreter',
    { bad: '#!/nope/sh\n' },
    ['--', './bad'],
    'COMMAND_NOT_EXECUTABLE',
    /its interpreter is not/,
  ],
  ['a foreign program', { elf: '#!' }, ['--', './elf'], 'COMMAND_NOT_EXECUTABLE', /not a program of this machine/],
]

describeWith('userns', 'a refusal starts and makes nothing', () => {
  test.each(REFUSED)('for %s', async (_title, files, argv, code, message) => {
    const cwd = await directoryWith(files)
    if ('elf' in files) await execa('sh', ['-c', 'printf "\x7fELF nothing" >elf'], { cwd })
    const mark = newMark()
    const before = await takeSnapshot({ mark })
    const made = await readdir(cwd, { recursive: true })
    const result = await runHere(argv, { cwd, env: { MARK: mark } })
    expect(result).toMatchObject({ ok: false, exitCode: null, reason: 'setup', error: { code } })
    expect(result.error).toMatchObject({ message: expect.stringMatching(message), hint: expect.stringMatching(/\S/) })
    expect(await readdir(cwd, { recursive: true })).toEqual(made)
    await expectNothingLeft({ before, mark })
  })

  test('but a directory on PATH is passed over: the next program of that name runs', async () => {
    const cwd = await directoryWith({ 'one/tool/x': '', 'two/tool': '#!/bin/sh\necho two\n' })
    const set = ['--env', 'PATH=/workspace/one:/workspace/two:/usr/bin:/bin']
    expect(await textHere([...set, '--', 'tool'], { cwd })).toEqual({ status: 0, out: 'two\n', err: '' })
  })
})

describeWith('userns', 'a run works when', () => {
  testWith('root', 'the disk of the cache is full', async () => {
    const cache = await directoryWith()
    await execa('mount', ['-t', 'tmpfs', '-o', 'size=16k', 'tmpfs', cache])
    onTestFinished(() => execa('umount', ['-l', cache]).then(() => undefined))
    await execa('sh', ['-c', `head -c 64k /dev/zero > ${cache}/full || true`])
    const [cwd, env] = [await directoryWith(), { XDG_CACHE_HOME: cache }]
    for (const _ of ['node', 'client'])
      expect(await runForText(['--', 'echo', 'ran'], { cwd, env })).toEqual({ status: 0, out: 'ran\n', err: '' })
  })
})

/** A PATH with these programs and links to the usual ones, without the machine's bwrap. */
async function pathWith(programs: Files, names: readonly string[] = ['node', 'sh', 'env']): Promise<string> {
  const bin = await directoryWith(programs)
  await chmod(bin, 0o755)
  const all = (process.env.PATH ?? '').split(':')
  for (const name of names) {
    if (name in programs) continue
    const found = await execa('sh', ['-c', `PATH='${all.join(':')}:/usr/sbin:/sbin' command -v ${name}`], {
      reject: false,
    })
    if (found.exitCode === 0) await symlink(found.stdout, join(bin, name))
  }
  return bin
}

const OLD =
  '#!/bin/sh\ncase "$*" in *--version*) echo "bubblewrap 0.3.0"; exit 0;; esac\necho "bwrap: Unknown option $1" >&2; exit 1\n'
/** Message of bwrap on Ubuntu 24.04 with apparmor_restrict_unprivileged_userns. */
const UBUNTU =
  '#!/bin/sh\ncase "$*" in *--version*) echo "bubblewrap 0.9.0"; exit 0;; esac\necho "bwrap: setting up uid map: Permission denied" >&2; exit 1\n'

describeWith(['bwrap', 'userns'], 'the engine', () => {
  const run = async (bin: string, argv: readonly string[]) =>
    textHere([...argv, '--', '/bin/echo', 'ran'], { cwd: await directoryWith(), env: { PATH: bin } })

  test('needs no program on PATH', async () => {
    expect(await run(await pathWith({}), [])).toEqual({ status: 0, out: 'ran\n', err: '' })
  })

  test.each([
    ['too old', OLD, /0\.3\.0/],
    ['stopped by AppArmor', UBUNTU, /AppArmor|apparmor/],
  ])('that is a bwrap %s is refused with what it said, and auto takes unshare', async (_title, script, message) => {
    const bin = await pathWith({ bwrap: script })
    const { status, out, err } = await run(bin, ['--engine', 'bwrap'])
    expect({ status, out }).toEqual({ status: 125, out: '' })
    expect(err).toMatch(message)
    expect(await run(bin, [])).toMatchObject({ status: 0, out: 'ran\n' })
  })
})

/** A directory of root's on a file system without idmapped mounts: overlayfs has them for its layers only. */
async function closedOverlay(): Promise<string> {
  const base = await temporaryDirectory({ mode: 0o755 })
  const unmount = (directory: string) => execa('umount', ['-l', directory], { reject: false }).then(() => undefined)
  await execa('mount', ['-t', 'tmpfs', 'llm-do-test', base])
  onTestFinished(() => unmount(base))
  for (const name of ['lower', 'upper', 'work', 'seen']) await mkdir(join(base, name))
  const layers = `lowerdir=${base}/lower,upperdir=${base}/upper,workdir=${base}/work`
  await execa('mount', ['-t', 'overlay', 'llm-do-test', '-o', layers, join(base, 'seen')])
  onTestFinished(() => unmount(join(base, 'seen')))
  const shown = join(base, 'seen/own')
  await mkdir(shown, { mode: 0o700 })
  return shown
}

describeWith(['root', 'userns'], "root's own directory where it cannot be idmapped", () => {
  test('is named with the reason and the way out when the command may not enter it', async () => {
    const overlay = await closedOverlay()
    const { status, out, err } = await textHere(['--', 'echo', 'ran'], { cwd: overlay })
    expect({ status, out }).toEqual({ status: 125, out: '' })
    expect(err).toContain(`may not enter ${overlay} `)
    expect(err).toContain(`hint: chmod o+rx ${shellWord(overlay)}, or run llm-do as a plain user who owns it`)
    await chmod(overlay, 0o755) // what the hint says is enough
    expect(await textHere(['--', 'echo', 'ran'], { cwd: overlay })).toEqual({ status: 0, out: 'ran\n', err: '' })
  })

  test('is named with the reason and the way out when the command was to write there', async () => {
    const overlay = await closedOverlay()
    const { status, out, err } = await textHere(['--rw', '.', '--', 'touch', 'made'], { cwd: overlay })
    expect({ status, out }).toEqual({ status: 125, out: '' })
    expect(err).toContain(`${overlay} is root's`)
    expect(err).toContain(`; or chown it to a user, whom the command then runs as: chown -R USER ${overlay}`)
    await execa('chown', ['-R', '65533:65533', overlay])
    expect(await textHere(['--rw', '.', '--', 'touch', 'made'], { cwd: overlay })).toEqual({
      status: 0,
      out: '',
      err: '',
    })
    expect(await readdir(overlay)).toContain('made')
  })
})
