/**
 * Programs that a command in a sandbox left where PATH leads: none of them is ever started on the host. Each attack has a control, in
 * which the same program lies outside and is started.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { execa } from 'execa'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { type PackageCopy, packageCopy } from '../support/package.ts'

const site: { home: string; work: string; zone: string; outside: string } = {
  home: '',
  work: '',
  zone: '',
  outside: '',
}
const built: { package?: PackageCopy } = {}

beforeAll(async () => {
  built.package = await packageCopy()
})
afterAll(() => built.package?.remove())

beforeEach(async () => {
  const home = await temporaryDirectory()
  for (const name of ['work/bin', 'zone/bin', 'outside', 'links']) mkdirSync(join(home, name), { recursive: true })
  Object.assign(site, { home, work: join(home, 'work'), zone: join(home, 'zone'), outside: join(home, 'outside') })
})

const mark = (): string => join(site.home, 'started')

/** Leaves a program that says that it was started. */
function plant(directory: string, name: string): string {
  const file = join(directory, name)
  writeFileSync(file, `#!/bin/sh\necho "$0" >>${mark()}\nexit 1\n`)
  chmodSync(file, 0o755)
  return file
}

/** @param entries come before the PATH of the test */
async function call(words: readonly string[], entries: readonly string[], program = 'llm-do'): Promise<void> {
  await execa(join(built.package?.root ?? '', 'bin', program), words, {
    cwd: site.work,
    env: { PATH: [...entries, process.env['PATH']].join(':'), HOME: site.home, ENABLE_DOCKER: 'true' },
    extendEnv: false,
    reject: false,
    stdin: 'ignore',
  })
}

/** A way by which PATH leads to what was planted. @returns the entry */
type Way = (program: string) => string

const inBin = (program: string): string => plant(join(site.work, 'bin'), program)

/** An entry that leads to what was made. */
const entryFor =
  (entry: () => string, make: (program: string) => unknown): Way =>
  (program) => {
    make(program)
    return entry()
  }

const WORKSPACE: readonly (readonly [string, Way])[] = [
  ['an absolute entry below the directory', entryFor(() => join(site.work, 'bin'), inBin)],
  [
    'the directory itself',
    entryFor(
      () => site.work,
      (program) => plant(site.work, program),
    ),
  ],
  ['a relative entry', entryFor(() => 'bin', inBin)],
  [
    'an entry `.`',
    entryFor(
      () => '.',
      (program) => plant(site.work, program),
    ),
  ],
  [
    'an empty entry',
    entryFor(
      () => '',
      (program) => plant(site.work, program),
    ),
  ],
  ['an entry with `..`', entryFor(() => `${site.outside}/../${basename(site.work)}/bin`, inBin)],
  [
    'an entry that is a link into the directory',
    entryFor(
      () => join(site.home, 'links/bin'),
      (program) => {
        inBin(program)
        symlinkSync(join(site.work, 'bin'), join(site.home, 'links/bin'))
      },
    ),
  ],
  [
    'a link to a program in the directory',
    entryFor(
      () => site.outside,
      (program) => symlinkSync(inBin(program), join(site.outside, program)),
    ),
  ],
  [
    'an entry below the directory that is a link out of it',
    entryFor(
      () => join(site.work, 'tools'),
      (program) => {
        plant(site.outside, program)
        symlinkSync(site.outside, join(site.work, 'tools'))
      },
    ),
  ],
]

const ASKING: readonly (readonly [string, string, readonly string[]])[] = [
  ['bwrap', 'a run by it', ['exec', '--engine', 'bwrap', '--', 'true']],
  ['docker', 'a run by it', ['exec', '--backend', 'docker', '--', 'true']],
  ['docker', '`images`', ['images']],
  ['docker', '`prune`', ['prune']],
  ['wasmtime', 'a run by it', ['exec', '--runtime', 'wasmtime', '--', './x.wasm']],
  ...['bwrap', 'docker', 'wasmtime'].map((program) => [program, '`doctor`', ['doctor']] as const),
  ['llm-do', 'a word that is not ours', ['chat']],
]

describeWith('userns', 'what the runner starts', () => {
  describe.each(ASKING)('%s, for %s', (program, _, words) => {
    test('is started from an entry outside: the control', async () => {
      plant(site.outside, program)
      await call(words, [site.outside])
      expect(existsSync(mark())).toBe(true)
    })

    test('is not started by any entry that leads into the directory of the call', async () => {
      for (const [at, [title, way]] of WORKSPACE.entries()) {
        site.work = join(site.home, `work-${at}`)
        site.outside = join(site.home, `outside-${at}`)
        for (const directory of [join(site.work, 'bin'), site.outside]) mkdirSync(directory, { recursive: true })
        await call(words, [way(program)])
        expect({ title, started: existsSync(mark()) }).toEqual({ title, started: false })
      }
    }, 120_000)
  })

  test.each([
    ['bwrap', ['--engine', 'bwrap']],
    ['docker', ['--backend', 'docker']],
  ])('%s is not started from a zone that the run may write to', async (program, flags) => {
    const entry = join(plant(join(site.zone, 'bin'), program), '..')
    await call(['exec', ...flags, '--', 'true'], [entry])
    expect(existsSync(mark())).toBe(true)
    execFileSync('rm', [mark()])
    await call(['exec', ...flags, '--rw', site.zone, '--', 'true'], [entry])
    await call(['exec', ...flags, '--rw', site.zone, '--plan', '--', 'true'], [entry])
    expect(existsSync(mark())).toBe(false)
  })
})

const WAYS = ['the client', 'the script of an install without scripts'] as const

describe.each(WAYS)('node, by %s', (way) => {
  beforeAll(() => {
    const { root = '', recordNode } = built.package ?? {}
    if (way !== WAYS[0]) execFileSync(process.execPath, [join(root, 'scripts/commands.mjs')])
    recordNode?.(undefined)
  })

  test('is started from an entry outside: the control', async () => {
    plant(site.outside, 'node')
    await call(['profiles'], [site.outside])
    expect(existsSync(mark())).toBe(true)
  })

  test.each(WORKSPACE)('is not started by %s', async (_, lead) => {
    await call(['profiles'], [lead('node')])
    expect(existsSync(mark())).toBe(false)
  })

  test.each([
    [(zone: string) => ['exec', '--rw', zone, '--plan', '--', 'true']],
    [(zone: string) => ['exec', `--rw=${zone}`, '--plan', '--', 'true']],
    [(zone: string) => ['exec', '--zone', `one=${zone}:rw`, '--plan', '--', 'true']],
    [(zone: string) => ['exec', '--workdir', zone, '--plan', 'true']],
  ])('is not started from a directory that the words name', async (words) => {
    const entry = join(plant(join(site.zone, 'bin'), 'node'), '..')
    await call(words(site.zone), [entry])
    expect(existsSync(mark())).toBe(false)
    await call(['exec', '--plan', '--', 'true'], [entry])
    expect(existsSync(mark())).toBe(true)
  })

  test.each([
    ['its group', 0o775],
    ['others', 0o757],
  ])('is not started when %s can write to it', async (_, mode) => {
    chmodSync(plant(site.outside, 'node'), mode)
    await call(['profiles'], [site.outside])
    expect(existsSync(mark())).toBe(false)
  })

  test('on record is started whatever PATH says, unless another user can write to it', async () => {
    const own = plant(site.home, 'node')
    built.package?.recordNode(own)
    await call(['profiles'], [site.outside])
    expect(existsSync(mark())).toBe(true)
    execFileSync('rm', [mark()])
    chmodSync(own, 0o777)
    await call(['profiles'], [site.outside])
    built.package?.recordNode(undefined)
    expect(existsSync(mark())).toBe(false)
  })

  describeWith('root', 'of another user', () => {
    test('is not started', async () => {
      execFileSync('chown', ['12345', plant(site.outside, 'node')])
      await call(['profiles'], [site.outside])
      expect(existsSync(mark())).toBe(false)
    })
  })
})

test('a node that may not be started is named with the reason and what helps', async () => {
  const { root, recordNode, remove } = await packageCopy()
  chmodSync(plant(site.outside, 'node'), 0o777)
  recordNode('/no/such/node')
  const PATH = ['bin', '', site.outside, plant(join(site.work, 'bin'), 'x').slice(0, -2)].join(':')
  const { exitCode, stderr } = await execa(join(root, 'bin/llm-do'), ['profiles'], {
    cwd: site.work,
    env: { PATH, HOME: site.home },
    extendEnv: false,
    reject: false,
  })
  await remove()
  expect(exitCode).toBe(125)
  const expected = [
    `/no/such/node (of ${root}/dist/node-path): No such file or directory`,
    'bin in PATH: not absolute',
    'an empty entry in PATH: not absolute',
    `${site.outside}/node: writable by its group or by others`,
    `${site.work}/bin in PATH: at or below the current directory`,
  ]
  for (const line of expected) expect(stderr).toContain(line)
  expect(stderr).toContain('llm-do: hint: put node 20.19 or newer')
})
