/**
 * What cannot be done is refused before anything is started or made: the right code, the right status, a hint, one event in the
 * world less. tests/cli/refusals.md has the same for the command line as text; here are the surroundings that are broken.
 */
import { chmod, copyFile, mkdir, readdir, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import { shellWord } from '../../src/report/hints.ts'
import type { CliOptions } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { expectNothingLeft, newMark, takeSnapshot } from '../support/leftovers.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { directoryWith, type Files, runForText } from './directory.ts'

interface Refusal {
  readonly status: number
  readonly code: string
  /** In the message. */
  readonly message: string | RegExp
}

/** Runs in a place and expects the refusal, in words and as JSON, and that the place is as it was. */
async function expectRefusal(
  argv: readonly string[],
  cwd: string,
  { status, code, message }: Refusal,
  options: CliOptions = {},
) {
  const mark = newMark()
  const before = await takeSnapshot({ mark })
  const files = await readdir(cwd, { recursive: true })
  const env = { ...options.env, MARK: mark }
  const run = await runForText(argv, { ...options, cwd, env })
  expect(run).toEqual({ status, out: '', err: expect.stringMatching(new RegExp(`^llm-do: error ${code}: `)) })
  expect(run.err).toMatch(message)
  expect(run.err).toMatch(/^llm-do: hint: \S/m)
  const json = await runForText(['--json', ...argv], { ...options, cwd, env })
  expect({ status: json.status, err: json.err }).toEqual({ status, err: '' })
  expect(JSON.parse(json.out)).toMatchObject({ ok: false, exitCode: null, reason: 'setup', error: { code } })
  expect((JSON.parse(json.out) as { error: { hint: string } }).error.hint).not.toBe('')
  expect(await readdir(cwd, { recursive: true })).toEqual(files)
  await expectNothingLeft({ before, mark })
}

const TOUCH = ['--', 'touch', '/workspace/ran']

/** title, files, argv before the command, refusal */
const POLICIES: readonly (readonly [string, Files, readonly string[], Refusal])[] = [
  [
    'a missing zone source',
    {},
    ['--ro', './none'],
    { status: 125, code: 'ZONE_INVALID', message: /none: it does not exist/ },
  ],
  [
    'a file where a directory is meant',
    { file: 'x' },
    ['--rw', './file/'],
    { status: 125, code: 'ZONE_INVALID', message: /expected a directory, got a file/ },
  ],
  ['a target in /usr', { a: 'x' }, ['--ro', 'a:/usr/a'], { status: 125, code: 'ZONE_INVALID', message: /\/usr\/a/ }],
  [
    'a target that is /etc',
    { 'd/a': 'x' },
    ['--ro', 'd:/etc'],
    { status: 125, code: 'ZONE_INVALID', message: /\/etc/ },
  ],
  [
    'a target below a writable zone',
    { 'a/x': '', 'b/x': '' },
    ['--rw', 'a:/data', '--ro', 'b:/data/in'],
    { status: 125, code: 'ZONE_INVALID', message: /below the writable zone .*\/a/ },
  ],
  [
    'two zones on one target',
    { 'a/x': '', 'b/x': '' },
    ['--ro', 'a:/data', '--ro', 'b:/data'],
    { status: 125, code: 'POLICY_INVALID', message: /target of its own, got "\/data", which the zone of ".*\/a" has/ },
  ],
  [
    'an unknown key',
    { 'p.yaml': 'sandbox: { memroy: 1g }\n' },
    ['--profile', './p.yaml'],
    { status: 125, code: 'POLICY_INVALID', message: /p\.yaml:1: .*memroy/ },
  ],
  [
    'a size without a unit',
    { 'p.yaml': 'sandbox: { resources: { memory: 512 } }\n' },
    ['--profile', './p.yaml'],
    { status: 125, code: 'POLICY_INVALID', message: /resources\.memory: expected a size .*got 512/ },
  ],
  [
    'a time with the unit of a size',
    {},
    ['--timeout', '30m5'],
    { status: 125, code: 'POLICY_INVALID', message: /--timeout: expected a time .*got "30m5"/ },
  ],
  [
    'profiles that extend each other',
    { 'a.yaml': 'sandbox: { extends: ./b.yaml }\n', 'b.yaml': 'sandbox: { extends: ./a.yaml }\n' },
    ['--profile', './a.yaml'],
    { status: 125, code: 'PROFILE_CYCLE', message: /a\.yaml.*b\.yaml/ },
  ],
  [
    'a profile that is not there',
    {},
    ['--profile', './none.yaml'],
    { status: 125, code: 'PROFILE_NOT_FOUND', message: /none\.yaml/ },
  ],
  ['an engine that is not known', {}, ['--engine', 'bwarp'], { status: 125, code: 'POLICY_INVALID', message: /bwrap/ }],
]

describeWith(['bwrap', 'userns'], 'refused, with nothing started and nothing made, is', () => {
  test.each(POLICIES)('%s', async (_title, files, argv, refusal) => {
    await expectRefusal([...argv, ...TOUCH], await directoryWith(files), refusal)
  })

  test('a symbolic link that leads to itself', async () => {
    const cwd = await directoryWith()
    await symlink('loop', join(cwd, 'loop'))
    await expectRefusal(['--ro', './loop', ...TOUCH], cwd, {
      status: 125,
      code: 'ZONE_INVALID',
      message: /go round in a circle/,
    })
  })

  test('an unreadable profile', async () => {
    const cwd = await directoryWith({ 'p.yaml': 'sandbox: {}\n' })
    await chmod(join(cwd, 'p.yaml'), 0)
    const isReadable = await execa('cat', [join(cwd, 'p.yaml')]).then(
      () => true,
      () => false,
    )
    if (isReadable) await rm(join(cwd, 'p.yaml')).then(() => mkdir(join(cwd, 'p.yaml'))) // Root reads everything but a directory.
    await expectRefusal(['--profile', './p.yaml', ...TOUCH], cwd, {
      status: 125,
      code: 'PROFILE_UNREADABLE',
      message: /p\.yaml/,
    })
  })

  test('no command', async () => {
    const { status, err } = await runForText(['--rw', '.'])
    expect({ status, err }).toEqual({ status: 125, err: expect.stringContaining('no command to run') })
  })
})

const COMMANDS: readonly (readonly [string, Files, string, Refusal])[] = [
  [
    'is not there',
    {},
    'nope-nope',
    { status: 127, code: 'COMMAND_NOT_FOUND', message: /nope-nope: not found in the sandbox/ },
  ],
  [
    'is not there at its path',
    {},
    './nope',
    { status: 127, code: 'COMMAND_NOT_FOUND', message: /\.\/nope: not found/ },
  ],
  [
    'is not executable',
    { plain: 'echo\n' },
    './plain',
    { status: 126, code: 'COMMAND_NOT_EXECUTABLE', message: /permission denied/ },
  ],
  [
    'has a bad interpreter',
    { bad: '#!/nope/sh\n' },
    './bad',
    { status: 126, code: 'COMMAND_NOT_EXECUTABLE', message: /its interpreter is not there/ },
  ],
  ['is a directory', { 'd/x': '' }, './d', { status: 126, code: 'COMMAND_NOT_EXECUTABLE', message: /is a directory/ }],
  [
    'goes through a file',
    { file: '' },
    './file/x',
    { status: 127, code: 'COMMAND_NOT_FOUND', message: /not a directory/ },
  ],
]

describeWith(['bwrap', 'userns'], 'a command cannot run that', () => {
  test.each(COMMANDS)('%s', async (_title, files, command, refusal) => {
    await expectRefusal(['--', command], await directoryWith(files), refusal)
  })

  test('is a script without a first line, or of another machine', async () => {
    const cwd = await directoryWith({ script: 'echo\n', other: '\u007fELF nothing' })
    for (const command of ['./script', './other']) {
      await chmod(join(cwd, command), 0o755)
      await expectRefusal(['--', command], cwd, {
        status: 126,
        code: 'COMMAND_NOT_EXECUTABLE',
        message: /not a program of this machine/,
      })
    }
  })

  test('is a directory on PATH: the next one of that name runs', async () => {
    const cwd = await directoryWith({ 'one/tool/x': '', 'two/tool': '#!/bin/sh\necho two\n' })
    const set = ['--env', 'PATH=/workspace/one:/workspace/two:/usr/bin:/bin']
    expect(await runForText([...set, '--', 'tool'], { cwd })).toEqual({ status: 0, out: 'two\n', err: '' })
  })
})

describeWith(['bwrap', 'userns'], 'a run goes on when', () => {
  test('home and cache are read-only', async () => {
    const home = await directoryWith()
    await chmod(home, 0o500)
    const env = { HOME: home, XDG_CACHE_HOME: '/proc/nowhere' }
    expect(await runForText(['--', 'echo', 'ran'], { cwd: await directoryWith(), env })).toEqual({
      status: 0,
      out: 'ran\n',
      err: '',
    })
  })

  testWith('root', 'the disk of the cache is full', async () => {
    const cache = await directoryWith()
    await execa('mount', ['-t', 'tmpfs', '-o', 'size=16k', 'tmpfs', cache])
    onTestFinished(() => execa('umount', ['-l', cache]).then(() => undefined))
    await execa('sh', ['-c', `head -c 64k /dev/zero > ${cache}/full || true`])
    const cwd = await directoryWith()
    for (const _ of [1, 2])
      expect(await runForText(['--', 'echo', 'ran'], { cwd, env: { XDG_CACHE_HOME: cache } })).toEqual({
        status: 0,
        out: 'ran\n',
        err: '',
      })
  })
})

/** A directory with programs of ours before the usual ones, and without the machine's own bwrap. */
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
/** What Ubuntu 24.04 with apparmor_restrict_unprivileged_userns lets bwrap say. */
const UBUNTU =
  '#!/bin/sh\ncase "$*" in *--version*) echo "bubblewrap 0.9.0"; exit 0;; esac\necho "bwrap: setting up uid map: Permission denied" >&2; exit 1\n'

describeWith(['bwrap', 'userns'], 'the engine', () => {
  const run = async (bin: string, argv: readonly string[]) =>
    runForText([...argv, '--', '/bin/echo', 'ran'], { cwd: await directoryWith(), env: { PATH: bin } })

  test('needs no program on PATH', async () => {
    expect(await run(await pathWith({}), [])).toEqual({ status: 0, out: 'ran\n', err: '' })
  })

  test('bwrap is refused by name when it is not on PATH', async () => {
    const { status, out, err } = await run(await pathWith({}), ['--engine', 'bwrap'])
    expect({ status, out }).toEqual({ status: 125, out: '' })
    expect(err).toMatch(/^llm-do: error NO_BACKEND: .*bwrap/)
    expect(err).toMatch(/hint: .*(install|doctor)/s)
  })

  testWith('root', 'is never a setuid bwrap', async () => {
    const bin = await pathWith({}, ['node', 'sh', 'env'])
    const { stdout } = await execa('sh', ['-c', 'command -v bwrap'])
    await copyFile(stdout, join(bin, 'bwrap'))
    await chmod(join(bin, 'bwrap'), 0o4755)
    const { status, err } = await run(bin, ['--engine', 'bwrap'])
    expect({ status, err }).toEqual({ status: 125, err: expect.stringContaining('setuid') })
  })

  test.each([
    ['too old', OLD, /0\.3\.0/],
    ['stopped by AppArmor', UBUNTU, /AppArmor|apparmor/],
  ])('that is a bwrap %s is refused with what it said and what to do', async (_title, script, message) => {
    const bin = await pathWith({ bwrap: script })
    const { status, out, err } = await run(bin, ['--engine', 'bwrap'])
    expect({ status, out }).toEqual({ status: 125, out: '' })
    expect(err).toMatch(message)
  })

  test.each([
    ['too old', OLD],
    ['stopped by AppArmor', UBUNTU],
  ])('bwrap %s leaves the choice to unshare', async (_title, script) => {
    expect(await run(await pathWith({ bwrap: script }), [])).toMatchObject({ status: 0, out: 'ran\n' })
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
    const { status, out, err } = await runForText(['--', 'echo', 'ran'], { cwd: overlay })
    expect({ status, out }).toEqual({ status: 125, out: '' })
    expect(err).toContain(`may not enter ${overlay} `)
    expect(err).toContain(`hint: chmod o+rx ${shellWord(overlay)}, or run llm-do as a plain user who owns it`)
    await chmod(overlay, 0o755) // what the hint says is enough
    expect(await runForText(['--', 'echo', 'ran'], { cwd: overlay })).toEqual({ status: 0, out: 'ran\n', err: '' })
  })

  test('is named with the reason and the way out when the command was to write there', async () => {
    const overlay = await closedOverlay()
    const { status, out, err } = await runForText(['--rw', '.', '--', 'touch', 'made'], { cwd: overlay })
    expect({ status, out }).toEqual({ status: 125, out: '' })
    expect(err).toContain(`${overlay} is root's`)
    expect(err).toContain(`; or chown it to a user, whom the command then runs as: chown -R USER ${overlay}`)
    await execa('chown', ['-R', '65533:65533', overlay])
    expect(await runForText(['--rw', '.', '--', 'touch', 'made'], { cwd: overlay })).toEqual({
      status: 0,
      out: '',
      err: '',
    })
    expect(await readdir(overlay)).toContain('made')
  })
})
