/** A home is kept in a directory that is this user's alone, or not at all. */
import { chmodSync, existsSync, mkdirSync, renameSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { homesDirectory } from '../../src/host/own-directory.ts'
import type { Policy } from '../../src/policy/policy.ts'
import { listHomes, makeHome, withHome } from '../../src/run/homes.ts'
import { PLAIN_POLICY } from '../plan/world.ts'
import { temporaryDirectory } from '../support/directory.ts'

/** root's are in one place: the rules are the same for any other user, and the files of this process count as that user's. */
const uid = process.getuid?.() ?? -1
const AS_OTHER = 12_345
let env: { XDG_STATE_HOME: string }
const project = '/srv/project'
beforeEach(async () => {
  env = { XDG_STATE_HOME: await temporaryDirectory() }
})

const policy: Policy = { ...PLAIN_POLICY, home: 'agent' }
const pathOf = (): string => join(env.XDG_STATE_HOME, 'llm-do/homes/0123456789abcdef/agent')

describe('the zone of a home', () => {
  test('is its own for each project, and none where there is no name or a zone has its place', () => {
    const zones = (of: string, from = policy) => withHome(from, { env, uid: AS_OTHER, project: of }).zones
    expect(zones('/a')).toMatchObject([{ target: '/home/sandbox', mode: 'rw', create: true, isHome: true }])
    expect(zones('/a')[0]?.hostPath).not.toBe(zones('/b')[0]?.hostPath)
    expect(dirname(dirname(zones('/a')[0]?.hostPath ?? ''))).toBe(homesDirectory(env, AS_OTHER))
    expect(zones('/a', { ...policy, home: null })).toEqual([])
    const [zone] = zones('/a')
    expect(zones('/a', { ...policy, zones: zone === undefined ? [] : [{ ...zone, mode: 'ro' }] })).toHaveLength(1)
    expect(existsSync(join(env.XDG_STATE_HOME, 'llm-do'))).toBe(false)
  })

  test('is refused without a state directory', () => {
    expect(() => withHome(policy, { env: {}, uid: AS_OTHER, project })).toThrow('there is none')
  })
})

describe('a home', () => {
  test('is made in directories that are closed to others, and may have any mode itself', () => {
    const made = makeHome(pathOf(), { uid, project })
    expect(made).toBe(`${statSync(pathOf()).dev} ${statSync(pathOf()).ino}`)
    chmodSync(pathOf(), 0o777)
    expect(makeHome(pathOf(), { uid, project })).toBe(made)
    expect([1, 2, 3].map((up) => statSync(join(pathOf(), ...Array(up).fill('..'))).mode & 0o777)).toEqual(
      Array(3).fill(0o700),
    )
  })

  test('is not made where its project cannot be recorded, since no later run would take it', () => {
    mkdirSync(join(dirname(pathOf()), '.project'), { recursive: true, mode: 0o700 })
    expect(() => makeHome(pathOf(), { uid, project })).toThrow('.project cannot be written')
    expect(existsSync(pathOf())).toBe(false)
  })

  test.each<[string, () => void]>([
    ['is open to others above', () => chmodSync(dirname(pathOf()), 0o750)],
    [
      'is behind a link',
      () => {
        renameSync(dirname(pathOf()), `${dirname(pathOf())}0`)
        symlinkSync(`${dirname(pathOf())}0`, dirname(pathOf()))
      },
    ],
    [
      'is a link',
      () => {
        renameSync(pathOf(), `${pathOf()}0`)
        symlinkSync(`${pathOf()}0`, pathOf())
      },
    ],
    [
      'is a file',
      () => {
        renameSync(pathOf(), `${pathOf()}0`)
        writeFileSync(pathOf(), '')
      },
    ],
    ['was made for another project', () => writeFileSync(join(dirname(pathOf()), '.project'), '/elsewhere')],
  ])('is not taken when it %s', (_, spoil) => {
    makeHome(pathOf(), { uid, project })
    spoil()
    expect(() => makeHome(pathOf(), { uid, project })).toThrow('no private directory of yours')
  })

  test('of another user is not taken', () => {
    makeHome(pathOf(), { uid, project })
    expect(() => makeHome(pathOf(), { uid: AS_OTHER, project })).toThrow('no private directory of yours')
  })

  test('is listed with its project; what is not ours is left out', () => {
    if (uid === 0) return
    makeHome(pathOf(), { uid, project })
    mkdirSync(join(env.XDG_STATE_HOME, 'llm-do/homes/open'), { mode: 0o755 })
    expect(listHomes(env, uid)).toEqual([{ project, name: 'agent', path: pathOf() }])
  })
})
