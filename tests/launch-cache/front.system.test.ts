/** The front-end beside node: the same words give the same bytes by both ways, and nothing stale or changed is used. */
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { execa } from 'execa'
import { beforeEach, describe, expect, test } from 'vitest'
import { sumOf } from '../../src/launch-cache/key.ts'
import { type CliResult, cliWords } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { checkoutFor, currentUser } from '../support/users.ts'

interface Place {
  readonly home: string
  readonly work: string
}

/** Longer than store.ts wants a file to be settled. */
const SETTLE_MS = 120

const place: { current: Place } = { current: { home: '', work: '' } }

beforeEach(async () => {
  const home = await temporaryDirectory()
  const work = join(home, 'work')
  mkdirSync(work)
  place.current = { home, work }
})

const cacheOf = ({ home }: Place): string => join(home, '.cache', 'llm-do', 'launch')
const cachedFiles = (): readonly string[] => {
  try {
    return readdirSync(cacheOf(place.current)).map((name) => join(cacheOf(place.current), name))
  } catch {
    return []
  }
}

async function runIn(words: readonly string[], env: Record<string, string> = {}): Promise<CliResult> {
  const [file = '', ...argv] = cliWords(words)
  const { home, work } = place.current
  const result = await execa(file, argv, {
    cwd: work,
    env: { PATH: process.env['PATH'], HOME: home, LANG: 'C.UTF-8', ...env },
    extendEnv: false,
    encoding: 'buffer',
    stripFinalNewline: false,
    reject: false,
    input: 'input\n',
  })
  return {
    status: result.exitCode,
    signal: result.signal as NodeJS.Signals | undefined,
    stdout: Buffer.from(result.stdout),
    stderr: Buffer.from(result.stderr),
  }
}

/** Node is told to fail at once, so that only front can have run the command. */
const withoutNode = { NODE_OPTIONS: '--no-such-option' }

async function warm(words: readonly string[]): Promise<void> {
  await setTimeout(SETTLE_MS)
  await runIn(words)
}

describeWith('bwrap', 'a plan that is known', () => {
  test.each([
    [['-c', 'echo "$0 $1"', '--', 'echo', 'wrong'], 'echo wrong\n'],
    [['--memory', '64MiB', 'echo', '--', 'echo', 'wrong'], '-- echo wrong\n'],
  ])('runs the same command every time where %j can be split in two ways', async (words, printed) => {
    for (const time of [1, 2, 3]) {
      await setTimeout(SETTLE_MS)
      expect({ time, ...(await runIn(words)) }).toMatchObject({ status: 0, stdout: Buffer.from(printed) })
    }
  })

  test('is started without node', async () => {
    await warm(['--', 'cat'])
    expect(await runIn(['--', 'cat'], withoutNode)).toMatchObject({ status: 0, stdout: Buffer.from('input\n') })
  })

  test('is started without node by a user whose PATH names a place that is closed to him', async () => {
    const closed = join(place.current.home, 'closed')
    mkdirSync(closed, { mode: 0o000 })
    const PATH = `${closed}:${process.env['PATH']}`
    await setTimeout(SETTLE_MS)
    await runIn(['--', 'cat'], { PATH })
    expect((await runIn(['--', 'cat'], { ...withoutNode, PATH })).status).toBe(0)
  })

  test('is not started without node when nothing is cached: the control of the tests below', async () => {
    expect((await runIn(['--', 'cat'], withoutNode)).status).not.toBe(0)
  })

  test.each([
    [['--', 'sh', '-c', 'exit 7']],
    [['--', 'sh', '-c', 'kill -SEGV $$']],
    [['--', 'sh', '-c', 'echo out; echo err >&2; exit 1']],
    [['--', 'no-such-command']],
    [['--', 'cat', '/etc/shadow']],
    [['--timeout', '200ms', '--', 'sleep', '9']],
    [['-c', 'cat; env; pwd; id']],
    [['--', 'env']],
    [['--env', 'HOME', '--', 'env']],
    [['--no-such-option', '--', 'true']],
    [['--ro', '/no/such/place', '--', 'true']],
    [['--', 'printf', '%s|', '', '--bind', 'a\nb', 'ü']],
  ])('says and does the same by both ways: %j', async (words) => {
    await setTimeout(SETTLE_MS)
    const byNode = await runIn(words)
    expect(await runIn(words)).toEqual(byNode)
  })
})

describeWith('bwrap', 'a cached plan is not used', () => {
  const words = ['--profile', './p.yaml', '--', 'cat']
  const profile = (memory: string): void =>
    writeFileSync(
      join(place.current.work, 'p.yaml'),
      `sandbox: { extends: default, resources: { memory: ${memory} } }\n`,
    )

  beforeEach(async () => {
    profile('100m')
    await warm(words)
    expect((await runIn(words, withoutNode)).status).toBe(0)
  })

  const rewrite = (change: (bytes: Buffer) => Buffer | string): void => {
    for (const file of cachedFiles()) writeFileSync(file, change(readFileSync(file)))
  }

  test.each<readonly [string, () => void]>([
    ['when the profile has changed', () => profile('200m')],
    ['when the profile is gone', () => rmSync(join(place.current.work, 'p.yaml'))],
    [
      'when the profile has the same size and times but other content',
      () => {
        const file = join(place.current.work, 'p.yaml')
        profile('900m')
        utimesSync(file, new Date(0), new Date(0))
      },
    ],
    [
      'when a profile that it extends appears earlier in the search order',
      () => {
        const directory = join(place.current.home, '.config', 'llm-do', 'profiles')
        mkdirSync(directory, { recursive: true })
        writeFileSync(join(directory, 'default.yaml'), 'sandbox: {}\n')
      },
    ],
    ['when others may read it', () => chmodSync(cachedFiles()[0] ?? '', 0o644)],
    ['when others may reach its directory', () => chmodSync(cacheOf(place.current), 0o755)],
    [
      'when it is a symbolic link',
      () => {
        const [file = ''] = cachedFiles()
        writeFileSync(`${file}.real`, readFileSync(file), { mode: 0o600 })
        rmSync(file)
        symlinkSync(`${file}.real`, file)
      },
    ],
    ['when it is empty', () => rewrite(() => '')],
    ['when it is cut', () => rewrite((bytes) => bytes.subarray(0, bytes.length - 20))],
    [
      'when a byte is another one',
      () => rewrite((bytes) => Buffer.from(bytes.map((byte, at) => (at === 900 ? byte ^ 1 : byte)))),
    ],
    ['when it is longer', () => rewrite((bytes) => Buffer.concat([bytes, Buffer.from('seccomp\0')]))],
  ])('%s', async (_, change) => {
    change()
    expect((await runIn(words, withoutNode)).status).not.toBe(0)
  })

  test('for another directory', async () => {
    place.current = { ...place.current, work: join(place.current.work, 'below') }
    mkdirSync(place.current.work)
    expect((await runIn(['--', 'cat'], withoutNode)).status).not.toBe(0)
  })

  test('for another PATH', async () => {
    const PATH = `/nowhere:${process.env['PATH']}`
    expect((await runIn(words, { ...withoutNode, PATH })).status).not.toBe(0)
  })
})

describe('the store', () => {
  test('never holds a value that came with the command line', async () => {
    await warm(['--env', 'TOKEN=planted-secret', '--', 'true'])
    expect(cachedFiles()).toEqual([])
  })

  test('is private', async () => {
    await warm(['--', 'true'])
    expect(cachedFiles()).toHaveLength(1)
    const modes = execFileSync('stat', ['-c', '%a', cacheOf(place.current), ...cachedFiles()], { encoding: 'utf8' })
    expect(modes).toBe('700\n600\n')
  })

  test('is emptied by `llm-do cache clear`', async () => {
    await warm(['--', 'true'])
    const program = join(checkoutFor(currentUser()), 'bin', 'llm-do')
    const { home, work } = place.current
    await execa(program, ['cache', 'clear'], {
      cwd: work,
      env: { HOME: home, PATH: process.env['PATH'] },
      extendEnv: false,
    })
    expect(cachedFiles()).toEqual([])
  })

  test('marks its files with a sum over all that follows the mark', async () => {
    await warm(['--', 'true'])
    const bytes = readFileSync(cachedFiles()[0] ?? '')
    const [, verb, sum] = bytes.toString('latin1').split('\0')
    const start = `llm-do-launch-2\0check\0${sum}\0`.length
    expect([verb, sum]).toEqual(['check', sumOf(bytes.subarray(start))])
  })
})
