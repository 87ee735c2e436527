/** What the next command finds where an apply was killed, and what people did to the directory before it came. */
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { chown } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { describeWith, testWith } from '../support/needs.ts'
import { becoming, type User, uidOf } from '../support/users.ts'
import { helperFor, makePlace, type Place, treeOf } from './place.ts'

async function fill({ project, user }: Place): Promise<void> {
  for (const name of ['gone']) mkdirSync(join(project, name))
  const files = ['file', 'other', 'gone/one']
  for (const name of files) writeFileSync(join(project, name), `${name}\n`)
  if (user === 'plain')
    for (const name of ['gone', ...files]) await chown(join(project, name), uidOf('plain'), uidOf('plain'))
}

const SCRIPT =
  'for f in file other; do echo more >> $f; done; echo new > new; mkdir n m; echo x > n/x; echo x > m/x; rm -r gone'
const CHANGED = ['file', 'other', 'new', 'n', 'n/x', 'm', 'm/x', 'gone']

interface Begun {
  readonly place: Place
  readonly id: string
  /** Where the layer is. */
  readonly layers: string
}

/** An apply that is killed when its steps were taken, and it has not yet said that they were. */
async function killedApply(user: User, ...options: readonly string[]): Promise<Begun> {
  const place = await makePlace(user)
  await fill(place)
  const id = (await place.run(SCRIPT, ...options)).cow?.id ?? ''
  const layers = place.holders.find((directory) => existsSync(join(directory, id))) ?? ''
  // One for the layer, one for a stage on another mount: then come those of the directories.
  const count = options.length > 0 ? 3 : 2
  const kill = ['strace', '-o', '/dev/null', '-e', `inject=syncfs:signal=KILL:when=${count}`]
  const [file = '', ...words] = [...becoming(user), ...kill, helperFor(user), 'apply', layers, id]
  const { exitCode } = await execa(file, words, {
    input: CHANGED.map((path) => `0\0n\0${path}\0`).join(''),
    reject: false,
  })
  expect([exitCode, existsSync(join(place.project, 'gone')), readdirSync(join(place.project, 'n'))]).toEqual([
    undefined,
    false,
    ['x'],
  ])
  return { place, id, layers }
}

const keptIn = (directory: string): readonly string[] =>
  readdirSync(directory).filter((name) => name.startsWith('.llm-do-kept-'))

describe.each(['root', 'plain'] as const)('as %s', (user: User) => {
  describeWith([user === 'root' ? 'root' : 'plain-user', 'strace'], 'an apply that was killed', () => {
    test.each([[[]], [['--cow-upper', 'memory']]])(
      'is taken back, and keeps what was written since: %j',
      async (options) => {
        const { place, id } = await killedApply(user, ...options)
        for (const name of ['file', 'new']) appendFileSync(join(place.project, name), 'mine\n')
        writeFileSync(join(place.project, 'n/mine'), 'mine\n')
        const { status, stderr } = await place.cli('changes', id)
        expect([status, stderr.toString()]).toEqual([125, expect.stringMatching(/new was written after.*kept-/)])
        const contents = keptIn(place.project).map((name) => {
          const path = join(place.project, name)
          return existsSync(join(path, 'mine')) ? 'n' : readFileSync(path, 'utf8')
        })
        // Control: of what nobody has written, nothing is kept.
        expect(contents.toSorted()).toEqual(['file\nmore\nmine\n', 'n', 'new\nmine\n'])
        const others = readdirSync(place.project).filter((name) => !name.startsWith('.'))
        expect(others.toSorted()).toEqual(['file', 'gone', 'other'])
        expect(readFileSync(join(place.project, 'file'), 'utf8')).toBe('file\n')
        expect((await place.changes(id)).map(({ path }) => path)).toEqual(expect.arrayContaining(['file', 'new']))
      },
    )
  })
})

testWith(
  ['root', 'strace'],
  'an apply that was killed is not taken back through another mount than it went through',
  async () => {
    const { place, id } = await killedApply('root')
    await execa('mount', ['--bind', place.project, place.project])
    try {
      const { status, stderr } = await place.cli('changes', id)
      expect([status, stderr.toString()]).toEqual([125, expect.stringContaining('behind another mount')])
    } finally {
      await execa('umount', [place.project])
    }
    // Control: without it all of it is taken back.
    expect((await place.cli('changes', id)).status).toBe(0)
    expect(treeOf(place.project).map((line) => line.split(' ')[0])).toEqual(['file', 'gone', 'gone/one', 'other'])
  },
)
