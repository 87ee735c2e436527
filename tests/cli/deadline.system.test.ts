/** Interactive runs have no default timeout (programs/terminal.py); programs and JSON have the one of the profile. */
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { programFor } from '../support/cli.ts'
import { newDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { currentUser } from '../support/users.ts'

const HARNESS = join(import.meta.dirname, '../programs/terminal.py')
/** Longer than launch-cache/store.ts wants a file to be settled. */
const SETTLE_MS = 120

interface Place {
  readonly home: string
  readonly env: Readonly<Record<string, string>>
  readonly cache: string
}

async function inPlace(act: (place: Place) => Promise<void>): Promise<void> {
  const { path: home, remove } = await newDirectory({ owner: currentUser(), mode: 0o755 })
  for (const name of ['work', 'runtime']) mkdirSync(join(home, name), { mode: 0o700 })
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: home,
    XDG_RUNTIME_DIR: join(home, 'runtime'),
    LANG: 'C.UTF-8',
    TERM: 'xterm',
  }
  try {
    await setTimeout(SETTLE_MS)
    await act({ home, env, cache: join(home, '.cache/llm-do/launch') })
  } finally {
    await remove()
  }
}

const cwdOf = ({ home }: Place): string => join(home, 'work')
const program = (): string => programFor(currentUser())

async function atTerminal(place: Place, argv: readonly string[]): Promise<string> {
  const request = { argv, cwd: cwdOf(place), env: place.env, rows: 24, columns: 200, steps: [] }
  const { stdout } = await execa('python3', [HARNESS], { input: JSON.stringify(request) })
  return (JSON.parse(stdout) as { screen: string }).screen
}

async function byProgram(place: Place, argv: readonly string[]): Promise<string> {
  const [file = '', ...words] = argv
  return (await execa(file, words, { cwd: cwdOf(place), env: place.env, extendEnv: false, stdin: 'ignore' })).stdout
}

const WHY = ['--plan', '--why', 'resources.timeout', '--', 'true']
/** Of one of the streams that count a terminal is taken away. */
const without = (redirection: string, words: readonly string[]): readonly string[] => [
  '/bin/sh',
  '-c',
  `exec "$@" ${redirection}`,
  'sh',
  program(),
  ...words,
]

/** Deadlines in the launch files that node has left for the client; undefined for one without. */
function deadlinesIn({ cache }: Place): readonly (string | undefined)[] {
  const texts = readdirSync(cache).map((name) => readFileSync(join(cache, name), 'latin1'))
  return texts.map((text) => /(?<!\0(?:ending|message|result|record))\0deadline\0(\d+)\0/.exec(text)?.[1])
}

describeWith(['userns', 'python'], 'a deadline that nobody has named', () => {
  test('is none at a terminal, and --why says so', async () => {
    await inPlace(async (place) => {
      const screen = await atTerminal(place, [program(), ...WHY])
      expect(screen.split(/\r?\n/).slice(0, 3)).toEqual([
        'resources.timeout',
        '  profile   stdin and stderr are terminals',
        expect.stringContaining('profiles/default.yaml'),
      ])
    })
  })

  // Profiles and flags count at a terminal, too: tests/policy/terminal-layer.test.ts.
  test.each([
    ['for a program', without('</dev/null', WHY)],
    ['for a program whose errors are read', without('2>err', WHY)],
  ])('is that of the profile %s', async (_, words) => {
    await inPlace(async (place) => {
      expect((await atTerminal(place, words)).split(/\r?\n/)[1]).toContain('profiles/default.yaml')
    })
  })

  test('is not taken over from a terminal by the plan that is left for the next run, nor brought there', async () => {
    await inPlace(async (place) => {
      const command = [program(), '--', 'echo', 'ran']
      await byProgram(place, command)
      expect(deadlinesIn(place)).toEqual(['30000'])
      expect(await atTerminal(place, command)).toBe('ran\r\n')
      expect([...deadlinesIn(place)].toSorted()).toEqual(['30000', undefined])
      rmSync(place.cache, { recursive: true })
      await setTimeout(SETTLE_MS)
      await atTerminal(place, command)
      expect(deadlinesIn(place)).toEqual([undefined])
      await byProgram(place, command)
      expect([...deadlinesIn(place)].toSorted()).toEqual(['30000', undefined])
    })
  })
})
