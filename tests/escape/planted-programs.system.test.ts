/**
 * Programs that a command in a sandbox left where PATH leads: the host starts none of them. Each attack has a control, in which the
 * same program lies outside and is started.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { execa } from 'execa'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { packageCopy, packageOfFile } from '../support/package.ts'

const site = { home: '', work: '', zone: '', outside: '' }

const built = packageOfFile()

beforeEach(async () => {
  const home = await temporaryDirectory()
  for (const name of ['work/bin', 'zone/bin', 'outside', 'links']) mkdirSync(join(home, name), { recursive: true })
  Object.assign(site, { home, work: join(home, 'work'), zone: join(home, 'zone'), outside: join(home, 'outside') })
})

const mark = (): string => join(site.home, 'started')

/** Leaves a program that reports its start. */
function plant(directory: string, name: string): string {
  const file = join(directory, name)
  writeFileSync(file, `#!/bin/sh\necho "$0" >>${mark()}\nexit 1\n`)
  chmodSync(file, 0o755)
  return file
}

/** @param entries come before the rest of PATH. @returns whether a planted program was started */
async function isStarted(
  words: readonly string[],
  entries: readonly string[],
  rest = process.env['PATH'],
): Promise<boolean> {
  rmSync(mark(), { force: true })
  await execa(join(built().root, 'bin/llm-do'), words, {
    cwd: site.work,
    env: { PATH: [...entries, rest].join(':'), HOME: site.home, ENABLE_DOCKER: 'true' },
    extendEnv: false,
    reject: false,
    stdin: 'ignore',
  })
  return existsSync(mark())
}

const inBin = (program: string): string => plant(join(site.work, 'bin'), program)

const inWork = (program: string): string => plant(site.work, program)

/** The entry, for a program that was planted. */
const entry = (_planted: string, word: string): string => word

/** Ways by which PATH leads to a planted program; each returns the entry. */
const WORKSPACE: readonly (readonly [string, (program: string) => string])[] = [
  ['an absolute entry below the directory', (program) => join(inBin(program), '..')],
  ['the directory itself', (program) => join(inWork(program), '..')],
  ['a relative entry', (program) => entry(inBin(program), 'bin')],
  ['an entry `.`', (program) => entry(inWork(program), '.')],
  ['an empty entry', (program) => entry(inWork(program), '')],
  ['an entry with `..`', (program) => entry(inBin(program), `${site.outside}/../${basename(site.work)}/bin`)],
  [
    'an entry that is a link into the directory',
    (program) => {
      symlinkSync(join(inBin(program), '..'), join(site.home, 'links/bin'))
      return join(site.home, 'links/bin')
    },
  ],
  [
    'a link to a program in the directory',
    (program) => {
      symlinkSync(inBin(program), join(site.outside, program))
      return site.outside
    },
  ],
  [
    'an entry below the directory that is a link out of it',
    (program) => {
      symlinkSync(join(plant(site.outside, program), '..'), join(site.work, 'tools'))
      return join(site.work, 'tools')
    },
  ],
]

const ASKING: readonly (readonly [string, string, readonly string[]])[] = [
  ['bwrap', 'a run by it', ['exec', '--engine', 'bwrap', '--', 'true']],
  ['docker', 'a run by it', ['exec', '--backend', 'docker', '--', 'true']],
  ['docker', '`images`', ['images']],
  ['docker', '`prune`', ['prune']],
  ['wasmtime', 'a run by it', ['exec', '--runtime', 'wasmtime', '--', './x.wasm']],
]

describeWith('userns', 'a program that the runner starts', () => {
  test.each(ASKING)(
    '%s, for %s, is started from an entry outside, and not from one below the directory',
    async (program, _, words) => {
      plant(site.outside, program)
      expect(await isStarted(words, [site.outside])).toBe(true)
      expect(await isStarted(words, [join(inBin(program), '..')])).toBe(false)
    },
  )

  test('is started for `doctor` from an entry outside, and not from one below the directory', async () => {
    const programs = ['bwrap', 'docker', 'wasmtime']
    const outside = programs.map((program) => plant(site.outside, program))
    expect(await isStarted(['doctor'], [site.outside])).toBe(true)
    expect(readFileSync(mark(), 'utf8').split('\n')).toEqual(expect.arrayContaining(outside))
    for (const program of programs) inBin(program)
    expect(await isStarted(['doctor'], [join(site.work, 'bin')])).toBe(false)
  })

  test.each(WORKSPACE)('is not started by %s', async (_, lead) => {
    expect(await isStarted(['exec', '--engine', 'bwrap', '--', 'true'], [lead('bwrap')])).toBe(false)
  })

  test.each([
    ['bwrap', ['--engine', 'bwrap']],
    ['docker', ['--backend', 'docker']],
  ])('%s is not started from a zone that the run may write to', async (program, flags) => {
    const entry = [join(plant(join(site.zone, 'bin'), program), '..')]
    expect(await isStarted(['exec', ...flags, '--', 'true'], entry)).toBe(true)
    expect(await isStarted(['exec', ...flags, '--rw', site.zone, '--', 'true'], entry)).toBe(false)
  })
})

const WAYS = ['the client', 'the script of an install without scripts'] as const

describe.each(WAYS)('node, by %s', (way) => {
  // The client needs no other program, and the real node is not started after the planted ones.
  const rest = way === WAYS[0] ? '/nonexistent' : process.env['PATH']
  const isTaken = (words: readonly string[], entries: readonly string[]) => isStarted(words, entries, rest)

  beforeAll(() => {
    const { root, recordNode } = built()
    if (way !== WAYS[0]) execFileSync(process.execPath, [join(root, 'scripts/commands.mjs')])
    recordNode(undefined)
  })

  test('is started from an entry outside: the control', async () => {
    plant(site.outside, 'node')
    expect(await isTaken(['profiles'], [site.outside])).toBe(true)
  })

  test.each(WORKSPACE)('is not started by %s', async (_, lead) => {
    expect(await isTaken(['profiles'], [lead('node')])).toBe(false)
  })

  test.each([
    [(zone: string) => ['exec', '--rw', zone, '--plan', '--', 'true']],
    [(zone: string) => ['exec', `--rw=${zone}`, '--plan', '--', 'true']],
    [(zone: string) => ['exec', '--zone', `one=${zone}:rw`, '--plan', '--', 'true']],
    [(zone: string) => ['exec', '--workdir', zone, '--plan', 'true']],
  ])('is not started from a directory that the words name', async (words) => {
    const entry = [join(plant(join(site.zone, 'bin'), 'node'), '..')]
    expect(await isTaken(words(site.zone), entry)).toBe(false)
    expect(await isTaken(['exec', '--plan', '--', 'true'], entry)).toBe(true)
  })

  test.each([
    ['its group', 0o775],
    ['others', 0o757],
  ])('is not started when %s can write to it', async (_, mode) => {
    chmodSync(plant(site.outside, 'node'), mode)
    expect(await isTaken(['profiles'], [site.outside])).toBe(false)
  })

  testWith('root', 'is not started when it is of another user', async () => {
    execFileSync('chown', ['12345', plant(site.outside, 'node')])
    expect(await isTaken(['profiles'], [site.outside])).toBe(false)
  })

  test('on record is started whatever PATH says, unless another user can write to it', async () => {
    const own = plant(site.home, 'node')
    built().recordNode(own)
    expect(await isTaken(['profiles'], [site.outside])).toBe(true)
    chmodSync(own, 0o777)
    expect(await isTaken(['profiles'], [site.outside])).toBe(false)
    built().recordNode(undefined)
  })
})

test('a node that may not be started is named with the reason and a fix', async () => {
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
