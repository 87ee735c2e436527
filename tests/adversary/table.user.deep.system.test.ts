/**
 * The standing adversary: each row of the table in every cell (engine or backend x filter x user) is held or refused, never harmed.
 * daily.ts has the controls. docs/internals/adversary.md has the verdicts: LLM_DO_GOLDEN=write, as root, writes it again.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { BUSYBOX_IMAGE, startDocker, startPodman, type TestDocker } from '../support/docker.ts'
import { isWritingGoldens } from '../support/golden.ts'
import { describeWith, type Need } from '../support/needs.ts'
import { canBePlain, currentUser, type User } from '../support/users.ts'
import { type Cell, FILTERS, type Filter } from './attack.ts'
import { OTHER } from './host.ts'
import { tryCell, type Verdict } from './matrix.ts'
import { ATTACKS } from './table.ts'

/** Ends a hang: on a slow machine podman took more than four minutes for its column. */
const LIMIT = { timeout: 900_000 }

interface Column {
  readonly backend: Cell['backend']
  readonly needs: readonly Need[]
  readonly filters: readonly Filter[]
  readonly start?: () => Promise<TestDocker>
}

const COLUMNS: readonly Column[] = [
  { backend: 'unshare', needs: ['unshare', 'userns'], filters: FILTERS },
  { backend: 'bwrap', needs: ['bwrap', 'userns'], filters: FILTERS },
  // A container takes ten times as long; the filter is the same one in another form.
  { backend: 'docker', needs: ['docker'], filters: ['default', 'nested'], start: startDocker },
  { backend: 'podman', needs: ['docker', 'podman'], filters: ['default'], start: startPodman },
]

/** The stage of a plain user is another one of `make test`; only the page needs both at once. */
const USERS: readonly User[] =
  isWritingGoldens() && currentUser() === 'root' && canBePlain() ? ['root', 'plain'] : [currentUser()]

const verdicts = new Map<string, Verdict['kind']>()
const key = (id: string, { backend, filter, user }: Cell): string => [id, backend, filter, user].join(' ')

describeWith('git', 'the adversary', () => {
  for (const user of USERS) {
    for (const { backend, needs, filters, start } of COLUMNS) {
      if (start !== undefined && user !== 'root') continue
      describeWith(needs, `as ${user}, by ${backend}`, () => {
        const running: { docker?: TestDocker } = {}
        if (start !== undefined) {
          beforeAll(async () => {
            running.docker = await start()
          })
          afterAll(() => running.docker?.stop())
        }
        test.each(filters)('harms nothing under the filter %s', LIMIT, async (filter) => {
          const cell: Cell = { backend, filter, user }
          const { docker } = running
          // Containers refuse zones of root: these are another user's.
          const container = docker === undefined ? {} : { container: containerOf(docker), owner: OTHER }
          const found = await tryCell(ATTACKS, { cell, ...container })
          for (const { id, kind } of found) verdicts.set(key(id, cell), kind)
          expect(found.filter(({ kind }) => kind === 'harmed' || kind === 'untried')).toEqual([])
        })
      })
    }
  }

  describe('the page', () => {
    test.each(USERS)('docs/internals/adversary.md is what this machine shows as %s', (user) => {
      const table = tableOf(user)
      if (isWritingGoldens()) writeFileSync(PAGE, replaced(readFileSync(PAGE, 'utf8'), user, table))
      expect(differences(partOf(readFileSync(PAGE, 'utf8'), user), table)).toEqual([])
    })
  })
})

const containerOf = ({ env, program }: TestDocker) => ({
  image: BUSYBOX_IMAGE,
  env: { ...env, LLM_DO_DOCKER: program },
})

/* ---- the page ---- */

const PAGE = join(import.meta.dirname, '../../docs/internals/adversary.md')
const SIGNS = { held: '+', refused: 'R', harmed: '!', untried: '?' } as const

const begin = (user: User): string => `<!-- ${user}: made by tests/adversary/table.user.deep.system.test.ts -->`
const END = '<!-- end -->'

/** One sign for each filter; nothing where the row claims nothing or what it needs is not here. */
function signsOf(id: string, { backend, filters }: Column, user: User): string {
  const signs = filters.map((filter) => verdicts.get(key(id, { backend, filter, user })))
  return signs.map((kind) => (kind === undefined ? '.' : SIGNS[kind])).join('')
}

function tableOf(user: User): string {
  const columns = COLUMNS.filter(({ start }) => start === undefined || user === 'root')
  const titles = columns.map(({ backend }) => backend)
  const rows = ATTACKS.map((attack) => {
    const signs = columns.map((column) => signsOf(attack.id, column, user))
    return `| ${[attack.id, attack.of, attack.sentence, ...signs].join(' | ')} |`
  })
  return [
    `| row | of | attack | ${titles.join(' | ')} |`,
    `|---|---|---|${titles.map(() => '---|').join('')}`,
    ...rows,
  ].join('\n')
}

const partOf = (page: string, user: User): string => (page.split(begin(user))[1]?.split(END)[0] ?? '').trim()

function replaced(page: string, user: User, table: string): string {
  const [before = '', rest = ''] = page.split(begin(user))
  return `${before}${begin(user)}\n\n${table}\n\n${rest.slice(rest.indexOf(END))}`
}

/** Lines that differ, where nothing was tried here (`.`) counts as the same. */
function differences(page: string, table: string): readonly string[] {
  const [written, found] = [page.split('\n'), table.split('\n')]
  if (written.length !== found.length) return [`${written.length} lines instead of ${found.length}`]
  return found.filter((line, at) => !isSame(written[at] ?? '', line))
}

function isSame(written: string, found: string): boolean {
  if (written.length !== found.length) return false
  return [...found].every((sign, at) => sign === written[at] || (sign === '.' && /[+R.]/.test(written[at] ?? '')))
}
