/** JSON from a known plan: node tells the same as when it plans, and uses nothing that is changed, damaged or somebody else's. */
import { chmodSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { execa } from 'execa'
import { beforeEach, expect, test } from 'vitest'
import { cliWords } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'

/** Longer than store.ts wants a file to be settled. */
const SETTLE_MS = 120

interface Place {
  readonly home: string
  readonly work: string
  readonly profile: string
}

const place: { current: Place } = { current: { home: '', work: '', profile: '' } }

beforeEach(async () => {
  const home = await temporaryDirectory()
  const work = join(home, 'work')
  const profile = join(home, 'own.yaml')
  mkdirSync(work)
  writeFileSync(profile, 'sandbox: { extends: default }\n')
  place.current = { home, work, profile }
  await setTimeout(SETTLE_MS)
})

async function json(command: readonly string[], options: readonly string[] = [], env: Record<string, string> = {}) {
  const { home, work, profile } = place.current
  const [file = '', ...argv] = cliWords(['--json', '--profile', profile, ...options, '--', ...command])
  const { stdout } = await execa(file, argv, {
    cwd: work,
    env: { PATH: process.env['PATH'], HOME: home, LANG: 'C.UTF-8', ...env },
    extendEnv: false,
    reject: false,
    input: 'input\n',
  })
  return JSON.parse(stdout) as Record<string, unknown>
}

/** What differs from run to run. */
const timeless = ({ durationMs: _d, setupMs: _s, usage: _u, ...rest }: Record<string, unknown>) => rest

const cache = () => join(place.current.home, '.cache/llm-do/launch')
const files = () => readdirSync(cache()).map((name) => join(cache(), name))
const toldFile = () => files().find((file) => file.endsWith('.told')) ?? 'none'
const launchFile = () => files().find((file) => !file.endsWith('.told')) ?? 'none'

/** A mark in what is kept for telling: it shows in the result exactly when node used it. */
function mark(): void {
  const told = JSON.parse(readFileSync(toldFile(), 'utf8')) as { plan: Record<string, unknown> }
  writeFileSync(toldFile(), JSON.stringify({ ...told, plan: { ...told.plan, profile: 'marked' } }))
}

async function isRecalled(): Promise<boolean> {
  return (await json(['cat']))['profile'] === 'marked'
}

describeWith('bwrap', 'a known plan whose result is JSON', () => {
  test.each([
    ['output and environment', ['sh', '-c', 'cat; env; echo oops >&2; exit 3']],
    ['a signal', ['sh', '-c', 'kill -9 $$']],
    ['a program that is not there', ['no-such-program']],
    ['a path that is not visible', ['ls', '/etc/shadow']],
  ])('says the same every time: %s', async (_, command) => {
    const first = timeless(await json(command))
    expect(timeless(await json(command))).toEqual(first)
    mark()
    expect(timeless(await json(command))).toMatchObject({ stdout: first['stdout'], exitCode: first['exitCode'] })
  })

  test('is used without planning', async () => {
    await json(['cat'])
    mark()
    expect(await isRecalled()).toBe(true)
  })

  test('gives the command the environment of this caller, not of the one who made it', async () => {
    const options = ['--env', 'TOKEN']
    await json(['sh', '-c', 'echo $TOKEN'], options, { TOKEN: 'one' })
    mark()
    const second = await json(['sh', '-c', 'echo $TOKEN'], options, { TOKEN: 'two' })
    expect(second).toMatchObject({ profile: 'marked', stdout: 'two\n' })
  })

  test.each([
    [
      'its launch file is damaged',
      () =>
        writeFileSync(
          launchFile(),
          readFileSync(launchFile()).map((byte, at) => (at === 900 ? byte ^ 1 : byte)),
        ),
    ],
    ['its launch file is cut short', () => writeFileSync(launchFile(), readFileSync(launchFile()).subarray(0, 700))],
    ['its launch file can be written by others', () => chmodSync(launchFile(), 0o620)],
    ['what is told of it can be read by others', () => chmodSync(toldFile(), 0o644)],
    ['its directory is open to others', () => chmodSync(cache(), 0o755)],
    [
      'what is told of it belongs to another launch file',
      () => writeFileSync(toldFile(), readFileSync(toldFile(), 'utf8').replace(/"check":"./, '"check":"x')),
    ],
    ['what is told of it is no JSON', () => writeFileSync(toldFile(), '{')],
    ['the profile was changed', () => writeFileSync(place.current.profile, 'sandbox: { extends: default }\n# other\n')],
    ['the profile was touched', () => utimesSync(place.current.profile, 1, 1)],
  ])('is planned again when %s', async (_, spoil) => {
    await json(['cat'])
    mark()
    expect(await isRecalled()).toBe(true)
    spoil()
    expect(await json(['cat'])).toMatchObject({ profile: expect.not.stringContaining('marked'), stdout: 'input\n' })
  })
})
