/** The next command after an apply was killed, and after people changed the directory before it came. */
import { appendFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { describeWith, testWith } from '../support/needs.ts'
import { becoming, currentUser, type User } from '../support/users.ts'
import { helperFor, holderOf, makePlace, type Place, pathInput, runtimeOf, treeOf } from './place.ts'

const FILES = 'gone/ file other gone/one'
const SCRIPT =
  'for f in file other; do echo more >> $f; done; echo new > new; mkdir n m; echo x > n/x; echo x > m/x; rm -r gone'
const CHANGED = ['file', 'other', 'new', 'n', 'n/x', 'm', 'm/x', 'gone']

interface Killed {
  readonly user: User
  readonly options?: readonly string[]
  /** The syncfs that kills it: the first, or the one after the steps. If the stage is on another mount there is one more before the steps. */
  readonly at: 'the first' | 'its steps taken'
}

const mountOf = async (path: string): Promise<string> => (await execa('findmnt', ['-no', 'TARGET', '-T', path])).stdout

async function applyKilled({
  user,
  options = [],
  at,
}: Killed): Promise<{ readonly place: Place; readonly id: string; readonly layer: string }> {
  const place = await makePlace(user, FILES)
  const id = (await place.run(SCRIPT, ...options)).cow?.id ?? ''
  const layers = holderOf(place, id)
  const [stage, project] = await Promise.all([layers, place.project].map(mountOf))
  const when = at === 'the first' ? 1 : stage === project ? 2 : 3
  const kill = ['strace', '-o', '/dev/null', '-e', `inject=syncfs:signal=KILL:when=${when}`]
  const [file = '', ...words] = [...becoming(user), ...kill, ...helperFor(user), 'apply', layers, id, ...place.holders]
  const { exitCode } = await execa(file, words, {
    input: pathInput(CHANGED),
    env: runtimeOf(place),
    reject: false,
  })
  expect(exitCode).toBeUndefined()
  return { place, id, layer: join(layers, id) }
}

/** When its steps were taken, and it has not yet said that they were. */
async function applyKilledAtEnd(user: User, ...options: readonly string[]) {
  const killed = await applyKilled({ user, options, at: 'its steps taken' })
  expect(readdirSync(killed.place.project).toSorted()).toEqual(expect.arrayContaining(['m', 'n', 'new']))
  return killed
}

const keptIn = (directory: string): readonly string[] =>
  readdirSync(directory).filter((name) => name.startsWith('.llm-do-kept-'))

const user = currentUser()

describe(`as ${user}`, () => {
  describeWith('strace', 'an apply that was killed', () => {
    test.each(['the first', 'its steps taken'] as const)(
      'is taken back by the next apply, which applies (%s)',
      async (at) => {
        const { place, id } = await applyKilled({ user, at })
        const part = await place.cli('apply', id, 'new')
        expect([part.status, part.stderr.toString()]).toEqual([0, expect.stringContaining('1 applied')])
        // The earlier choice is not applied: only the present names are.
        expect(readFileSync(join(place.project, 'file'), 'utf8')).toBe('file\n')
        expect(readdirSync(place.project).toSorted()).toEqual(['file', 'gone', 'new', 'other'])
        expect((await place.cli('apply', id)).status).toBe(0)
        expect(readdirSync(place.project).toSorted()).toEqual(['file', 'm', 'n', 'new', 'other'])
      },
    )

    test.each([[[]], [['--cow-upper', 'memory']]])(
      'is taken back, and keeps what was written since: %j',
      async (options) => {
        const { place, id } = await applyKilledAtEnd(user, ...options)
        for (const name of ['file', 'new']) appendFileSync(join(place.project, name), 'mine\n')
        writeFileSync(join(place.project, 'n/mine'), 'mine\n')
        // Looking at it changes nothing.
        const half = treeOf(place.project)
        for (const verb of ['changes', 'diff'])
          expect((await place.cli(verb, id)).stderr.toString()).toContain(`llm-do undo ${id} takes it back`)
        expect(treeOf(place.project)).toEqual(half)
        const { status, stderr } = await place.cli('undo', id)
        expect([status, stderr.toString()]).toEqual([125, expect.stringMatching(/new was written after.*kept-/)])
        const contents = keptIn(place.project).map((name) => {
          const path = join(place.project, name)
          return existsSync(join(path, 'mine')) ? 'n' : readFileSync(path, 'utf8')
        })
        // Control: without a record nothing is kept.
        expect(contents.toSorted()).toEqual(['file\nmore\nmine\n', 'n', 'new\nmine\n'])
        const others = readdirSync(place.project).filter((name) => !name.startsWith('.'))
        expect(others.toSorted()).toEqual(['file', 'gone', 'other'])
        expect(readFileSync(join(place.project, 'file'), 'utf8')).toBe('file\n')
        expect((await place.changes(id)).map(({ path }) => path)).toEqual(expect.arrayContaining(['file', 'new']))
      },
    )

    test('leaves nothing in the directory when it is discarded', async () => {
      const { place, id } = await applyKilled({ user, options: ['--cow-upper', 'memory'], at: 'the first' })
      // Control: it is there.
      const stages = () =>
        place.holders.flatMap((at) => (existsSync(at) ? readdirSync(at) : [])).filter((name) => name.includes(`${id}-`))
      expect(stages()).toEqual([`.stage-${id}-1-0`])
      expect((await place.cli('discard', id)).status).toBe(0)
      expect(stages()).toEqual([])
      expect(readdirSync(place.project).toSorted()).toEqual(['file', 'gone', 'other'])
    })

    test.each([['0\0fil'], ['0\0file\0word\0word\0']])(
      'notes its own times behind what was cut at %j',
      async (torn) => {
        const place = await makePlace(user, FILES)
        const { cow } = await place.run(SCRIPT)
        const id = cow?.id ?? ''
        expect((await place.cli('apply', id)).status).toBe(0)
        appendFileSync(join(place.layers, id, 'notes'), torn)
        expect((await place.cli('undo', id)).status).toBe(0)
        const changes = await place.changes(id)
        expect([changes.length > 0, changes.filter(({ conflict }) => conflict)]).toEqual([true, []])
      },
    )
  })
})

testWith(
  // Root makes the mount; the layers of the plain user are on the mount of its project.
  ['root', 'plain-user', 'strace'],
  'an apply that was killed is not taken back through another mount than it went through',
  async () => {
    const { place, id } = await applyKilledAtEnd('plain')
    await execa('mount', ['--bind', place.project, place.project])
    try {
      const { status, stderr } = await place.cli('undo', id)
      expect([status, stderr.toString()]).toEqual([125, expect.stringContaining('behind another mount')])
    } finally {
      await execa('umount', [place.project])
    }
    expect((await place.cli('undo', id)).status).toBe(0)
    // Control: without it all of it is taken back, and the host has not changed.
    expect((await place.changes(id)).filter(({ conflict }) => conflict)).toEqual([])
    expect(treeOf(place.project).map((line) => line.split(' ')[0])).toEqual(['file', 'gone', 'gone/one', 'other'])
  },
)
