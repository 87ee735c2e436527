/** The runner of `make test` (scripts/test): which files run as which user, and what a change reaches. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { temporaryDirectory } from './directory.ts'

interface Kind {
  readonly file: string
  readonly isUser: boolean
  readonly isDeep: boolean
}
interface SystemModule {
  readonly kindOf: (file: string) => Kind
  readonly systemFiles: () => readonly Kind[]
}
interface ModulesModule {
  readonly markModules: (directory: string) => () => void
}
interface TouchedModule {
  readonly REACHED_ROOMS: readonly string[]
  readonly testsTouched: (files: readonly string[]) => {
    readonly files: readonly Kind[]
    readonly mutants: readonly string[]
    readonly isWhole: boolean
  }
}

const ROOT = join(import.meta.dirname, '../..')
const load = async <T>(name: string): Promise<T> => (await import(join(ROOT, 'scripts/test', name))) as T
const { kindOf, systemFiles } = await load<SystemModule>('system.mjs')
const { markModules } = await load<ModulesModule>('modules.mjs')
const { REACHED_ROOMS, testsTouched } = await load<TouchedModule>('touched.mjs')

describe('the kind of a file of system tests', () => {
  test.each([
    ['tests/cli/a.system.test.ts', false, false],
    ['tests/cli/a.user.system.test.ts', true, false],
    ['tests/cli/a-b.deep.system.test.ts', false, true],
    ['tests/a.user.deep.system.test.ts', true, true],
  ])('%s: user %s, deep %s', (file, isUser, isDeep) => {
    expect(kindOf(file)).toEqual({ file, isUser, isDeep })
  })

  test.each(['tests/cli/a.deep.user.system.test.ts', 'tests/cli/a.slow.system.test.ts'])('%s has none', (file) => {
    expect(() => kindOf(file)).toThrow('expected NAME[.user][.deep].system.test.ts')
  })

  test('every file of this tree has one', () => {
    expect(systemFiles().length).toBeGreaterThan(50)
  })
})

describe('a change', () => {
  test('of the program that sets up the sandbox reaches the attacks and its mutants', () => {
    const { files, mutants, isWhole } = testsTouched(['native/sandbox/root-fs.c'])
    expect(isWhole).toBe(false)
    expect(files.map(({ file }) => file.split('/')[1])).toEqual(
      expect.arrayContaining(['escape', 'adversary', 'native']),
    )
    expect(mutants.length).toBeGreaterThan(0)
  })

  test('of one file of tests reaches that file', () => {
    const [{ file = '' } = {}] = systemFiles()
    expect(testsTouched([file]).files.map((one) => one.file)).toEqual([file])
  })

  test('of what all tests stand on reaches everything', () => {
    expect(testsTouched(['tests/support/cli.ts']).isWhole).toBe(true)
  })

  test('reaches tests, whatever room of the sources it is in', () => {
    const rooms = ['src', 'native'].flatMap((top) =>
      readdirSync(join(ROOT, top), { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map(({ name }) => `${top}/${name}`),
    )
    const isTried = (room: string): boolean =>
      REACHED_ROOMS.includes(room) || existsSync(join(ROOT, 'tests', room.split('/')[1] ?? ''))
    expect(rooms.filter((room) => !isTried(room))).toEqual([])
    expect(REACHED_ROOMS.filter((room) => !existsSync(join(ROOT, room)))).toEqual([])
  })
})

test('a transformed module that a whole run has not read is removed, and nothing else', async () => {
  const directory = await temporaryDirectory()
  const [read, unread] = ['a', 'b'].map((sign) => sign.repeat(40)) as [string, string]
  for (const name of [read, unread, '_metadata.json']) writeFileSync(join(directory, name), name)
  const removeUnread = markModules(directory)
  readFileSync(join(directory, read))
  writeFileSync(join(directory, 'c'.repeat(40)), 'new')
  removeUnread()
  expect(readdirSync(directory)).toEqual(['_metadata.json', read, 'c'.repeat(40)])
})
