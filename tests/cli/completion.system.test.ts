/** The completion in real shells, which ask the program for everything. */
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { COMPLETIONS } from '../../src/cli/completion.ts'
import { environmentOf, runCli, startCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { checkoutFor, currentUser } from '../support/users.ts'

const BIN = join(checkoutFor(currentUser()), 'bin')
const ZSH_DRIVER = join(import.meta.dirname, '../programs/type-and-tab.zsh')

interface Place {
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
}

async function makePlace(): Promise<Place> {
  const cwd = await temporaryDirectory({ mode: 0o755 })
  mkdirSync(join(cwd, 'home/.config/llm-do/profiles'), { recursive: true })
  writeFileSync(join(cwd, 'home/.config/llm-do/profiles/unusual.yaml'), 'sandbox: {}\n')
  writeFileSync(join(cwd, 'peculiar.worker'), '---\nname: peculiar\n---\nx\n')
  for (const name of ['some-data', 'my folder']) mkdirSync(join(cwd, name))
  writeFileSync(join(cwd, 'llm-do.bash'), COMPLETIONS.bash)
  writeFileSync(join(cwd, 'llm-do.zsh'), COMPLETIONS.zsh)
  writeFileSync(join(cwd, 'llm-do.fish'), COMPLETIONS.fish)
  const own = { ...environmentOf(currentUser()), PATH: `${BIN}:${process.env.PATH}`, HOME: join(cwd, 'home') }
  return { cwd, env: { ...own, TERM: 'dumb' } }
}

/** The completed line, or the offers for it. */
type Shell = (place: Place, lines: readonly string[]) => Promise<readonly string[]>

const call = async ({ cwd, env }: Place, words: readonly string[]): Promise<string> => {
  const [file = '', ...rest] = words
  return (await execa(file, rest, { cwd, env: env as NodeJS.ProcessEnv, extendEnv: false, stdin: 'ignore' })).stdout
}

/** Words as readline cuts them, which is also at `=` and `:`. */
const cutByReadline = (line: string): readonly string[] => line.split(/ +|(?<=[=:])|(?=[=:])/)

const bash: Shell = async (place, lines) => {
  const script = `source ./llm-do.bash; COMP_LINE=$1; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _llm_do; printf '%s\\n' "\${COMPREPLY[@]}"`
  const offers = lines.map((line) =>
    call(place, ['bash', '--norc', '-c', script, 'bash', line, ...cutByReadline(line)]),
  )
  return (await Promise.all(offers)).map((text) => [...new Set(text.split('\n'))].join(' '))
}

const fish: Shell = async (place, lines) => {
  const script = 'source llm-do.fish; for line in $argv; complete -C $line; printf "\\f\\n"; end'
  const text = await call(place, ['fish', '--no-config', '-c', script, ...lines])
  const wordsOf = (offers: string) => offers.split('\n').flatMap((line) => line.split('\t')[0] || [])
  return text
    .split('\f')
    .slice(0, -1)
    .map((offers) => wordsOf(offers).join(' '))
}

const zsh: Shell = async (place, lines) =>
  (
    await call(place, ['zsh', '-f', ZSH_DRIVER, join(place.cwd, 'llm-do.zsh'), join(place.cwd, 'told'), ...lines])
  ).split('\n')

/** The end of what a line becomes: bash and fish say the word, zsh the line. */
const endOf = (text: string): string => text.trimEnd().split(' ').at(-1) ?? ''

/** The shell's part; completion.test.ts has the program's offers for each line. */
const ROWS: readonly (readonly [string, string, string])[] = [
  ['a profile of the user', 'llm-do exec --profile unu', 'unusual'],
  ['a worker of the project', 'llm-do exec --worker peculiar', 'peculiar'],
  ['an option, by the short name of the program', 'llm-do-exec --memory 1g --timeo', '--timeout'],
  ['a program', 'llm-do exec -- setpri', 'setpriv'],
  ['a file behind the command', 'llm-do-exec cat pecu', 'peculiar'],
]

describe.each<['bash' | 'zsh' | 'fish', Shell, readonly (readonly [string, string, string])[]]>([
  [
    'bash',
    bash,
    [
      ['the file of a zone', 'llm-do exec --zone data=some', 'some-data'],
      ['an option behind a zone', 'llm-do exec --ro /a:/b --memo', '--memory'],
      ['a directory of a home', 'llm-do exec --home some', 'some-data'],
      ['a value behind =', 'llm-do exec --net=h', 'host'],
      ['all values behind =', 'llm-do exec --engine=', 'unshare'],
      ['a name with a space', 'llm-do-exec --ro my', 'folder'],
    ],
  ],
  [
    'zsh',
    zsh,
    [
      ['the file of a zone', 'llm-do exec --zone data=some', 'data=some-data/'],
      ['a directory of a home', 'llm-do exec --home=some', '--home=some-data/'],
      ['a value behind =', 'llm-do exec --net=h', '--net=host'],
    ],
  ],
  [
    'fish',
    fish,
    [
      ['the file of a zone', 'llm-do exec --zone data=some', 'data=some-data/'],
      ['a directory of a home', 'llm-do exec --home some', 'some-data/'],
      ['a value behind =', 'llm-do exec --net=h', '--net=host'],
    ],
  ],
])('%s', (name, shell, own) => {
  describeWith(name === 'bash' ? [] : name, 'asks the program', () => {
    test('for what there is', async () => {
      const rows = [...ROWS, ...own]
      const became = await shell(
        await makePlace(),
        rows.map(([, line]) => line),
      )
      const found = rows.map(([title], at) => [title, endOf(became[at] ?? '').replace(/=$/, '')])
      // A worker is a file, too, and both are offered.
      expect(found.map(([title, word]) => [title, word === 'peculiar.worker' ? 'peculiar' : word])).toEqual(
        rows.map(([title, , word]) => [title, word]),
      )
    })

    test('and starts none that a relative path names', async () => {
      const place = await makePlace()
      const mark = join(place.cwd, 'started')
      for (const directory of [place.cwd, join(place.cwd, 'some-data')]) {
        writeFileSync(join(directory, 'llm-do'), `#!/bin/sh\necho "$@" >>${mark}\n`)
        chmodSync(join(directory, 'llm-do'), 0o755)
      }
      await shell(place, ['./llm-do profiles show stri', './some-data/llm-do kill a'])
      expect(existsSync(mark)).toBe(false)
      // The control: found by PATH it is started.
      const env = { ...place.env, PATH: `${join(place.cwd, 'some-data')}:${process.env.PATH}` }
      await shell({ ...place, env }, ['llm-do profiles show stri'])
      expect(existsSync(mark)).toBe(true)
    })
  })
})

testWith('userns', 'bash offers the hosts of the last denial, and the failed run', async () => {
  const place = await makePlace()
  const lookUp = 'getent hosts refused.example; getent hosts -- "-odd.example"; exit 3'
  expect(await bash(place, ['llm-do exec --allow-host ref']), 'the control').toEqual([''])
  await runCli(['--allow-host', 'other.example', '-c', lookUp], place)
  const [host = '', assigned = '', failed = ''] = await bash(place, [
    'llm-do exec --allow-host ref',
    'llm-do exec --allow-host=',
    'llm-do why ',
  ])
  expect([endOf(host), endOf(assigned)]).toEqual(['refused.example', 'refused.example'])
  const { stdout } = await runCli(['why', '--list'], { program: 'llm-do', env: place.env })
  expect(failed.split(' ')).toContain(stdout.toString().split(' ')[0])
})

testWith('userns', 'bash offers the run to kill', async () => {
  const place = await makePlace()
  startCli(['-c', 'sleep 300'], place)
  const listed = async (): Promise<string> => {
    const { stdout } = await runCli(['ps', '--json'], { program: 'llm-do', env: place.env })
    const runs = JSON.parse(stdout.toString()) as readonly { id: string; directory: string }[]
    return runs.find(({ directory }) => directory === place.cwd)?.id ?? ''
  }
  await expect.poll(listed).not.toBe('')
  const id = await listed()
  // Other tests have runs, too: all but the last character is its own.
  expect(endOf((await bash(place, [`llm-do kill ${id.slice(0, -1)}`]))[0] ?? '')).toBe(id)
})
