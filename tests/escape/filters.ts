/**
 * The rows of the contract about files under every filter that a caller may choose: each holds, or the run is refused before anything
 * starts. What is refused for its protected paths is tried once more with these given up: the rest of the row must hold then.
 */
import { chownSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { observeForDoctor } from '../../src/doctor/checks.ts'
import { type ObservedRun, type Row, roomOf, type TestSite, type Verdict } from '../../src/doctor/contract-types.ts'
import { CONTRACT } from '../../src/doctor/rows/index.ts'
import { runInSandbox, tryRow } from '../../src/doctor/self-test.ts'
import type { SandboxInput } from '../../src/policy/keys/index.ts'
import { SYSCALL_NAMES } from '../../src/seccomp/syscalls.ts'
import { BUSYBOX_IMAGE, startDocker, type TestDocker } from '../support/docker.ts'
import { describeWith, type Need } from '../support/needs.ts'
import { currentUser } from '../support/users.ts'

const ROWS = CONTRACT.filter((row) => roomOf(row) === 'files')
export const FILTERS = ['default', 'strict', 'nested', 'off', 'a file that allows everything'] as const
type Filter = (typeof FILTERS)[number]
/** Filters that let a command make mounts, and so move protected paths. */
const MAY_REFUSE: ReadonlySet<Filter> = new Set(['nested', 'off', 'a file that allows everything'])
const REFUSALS = [
  /^flag self-test: .* cannot be writable under seccomp .*, which lets the command make mounts: /,
  /^docker lacks seccomp: the filter file .* cannot be translated$/,
]

const isRoot = currentUser() === 'root'
/** Another user than the caller: containers, and filters with mounts, refuse writable zones of root. */
const OTHER = 1000

/** Exact differences of a cell; docs/internals/backends.md and docs/internals/seccomp.md list them. */
type Differences = Readonly<Partial<Record<Row['id'], RegExp>>>
const SOCKETS_OPEN: Differences = { 'files.make-sockets': /^fifo: ok; socket: ok$/ }

interface Column {
  readonly title: string
  readonly needs: readonly Need[]
  readonly values: SandboxInput
  readonly owner?: number
  readonly differs: (filter: Filter) => Differences
  readonly start?: () => Promise<TestDocker>
}

/** Landlock, which closes sockets, forbids the mounts that `nested` is for. */
const byLandlock = (filter: Filter): Differences => (filter === 'nested' ? SOCKETS_OPEN : {})

/** The daemon makes these directories, and mounts know no flags but read-only there. */
const CONTAINER: Differences = {
  ...SOCKETS_OPEN,
  'files.host-absent': /^\/sys\/kernel: ok; \/\.\.\/sys\/kernel: ok$/,
  'files.proc-masks': /^\/proc\/[\w.-]+: other(; \/proc\/[\w.-]+: other)*$/,
  'files.root-read-only': /^\/dev: rw,nosuid; \/usr: ENOENT$/,
  'files.no-devices-no-setuid': /^\S+\/shown: ro; \S+\/writable: rw; \/usr: ENOENT$/,
}

const COLUMNS: readonly Column[] = [
  { title: 'unshare', needs: ['unshare', 'userns'], values: { engine: 'unshare' }, differs: byLandlock },
  { title: 'bwrap', needs: ['bwrap', 'userns'], values: { engine: 'bwrap' }, differs: byLandlock },
  {
    title: 'docker',
    needs: ['docker'],
    values: { backend: 'docker', image: BUSYBOX_IMAGE },
    owner: OTHER,
    differs: () => CONTAINER,
    start: startDocker,
  },
]

interface FilterCase {
  readonly values: SandboxInput
  readonly filter: Filter
  /** Owner of the zones; the caller by default. */
  readonly owner?: number | undefined
  readonly env: Readonly<Record<string, string>>
}

interface Tried {
  readonly verdict: Verdict
  readonly runs: readonly ObservedRun[]
}

async function tried(row: Row, { values, filter, owner, env }: FilterCase): Promise<Tried> {
  const { landlockAbi } = await observeForDoctor(process.env)
  const runs: ObservedRun[] = []
  const verdict = await tryRow(ownedBy(row, owner), {
    engine: values.engine === 'unshare' ? 'unshare' : 'bwrap',
    landlockAbi,
    runner: async (attempt, site) => {
      if (owner !== undefined && runs.length === 0) giveAway(site, owner)
      const policy = { ...values, seccomp: seccompOf(filter, site), ...attempt.policy }
      const seen = await runInSandbox({ ...attempt, policy, env: { ...attempt.env, ...env } }, site)
      runs.push(seen)
      return seen
    },
  })
  return { verdict, runs }
}

const ownedBy = (row: Row, owner: number | undefined): Row =>
  owner === undefined ? row : { ...row, verdict: (seen, site) => row.verdict(seen, { ...site, uid: owner }) }

function giveAway({ base, shown, writable }: TestSite, owner: number): void {
  for (const zone of [shown, writable]) {
    for (const name of ['.', ...(readdirSync(zone, { recursive: true }) as string[])])
      chownSync(join(zone, name), owner, owner)
  }
  chownSync(base, owner, owner)
}

function seccompOf(filter: Filter, { base }: TestSite): string {
  if (filter !== 'a file that allows everything') return filter
  const file = join(base, 'filter.yaml')
  writeFileSync(file, `extends: default\nallow: [${SYSCALL_NAMES.join(', ')}]\n`)
  return file
}

const isRefused = ({ runs }: Tried): boolean =>
  runs.length > 0 && runs.every(({ refused }) => REFUSALS.some((known) => known.test(refused?.message ?? '')))

/** Nothing when the row holds, or differs in just the way that this cell is known to. */
function brokenOf(row: Row, { verdict }: Tried, differs: Differences): string | undefined {
  const known = differs[row.id]
  if (verdict.kind !== 'broken') return known === undefined ? undefined : 'it holds, and is said not to'
  return known?.test(verdict.why) ? undefined : verdict.why
}

export function testFilters(titles: readonly string[], filters: readonly Filter[]): void {
  for (const column of COLUMNS.filter(({ title }) => titles.includes(title))) testColumn(column, filters)
}

function testColumn({ title, needs, values, owner, differs, start }: Column, filters: readonly Filter[]): void {
  describeWith(needs, `by ${title}`, () => {
    const running: { docker?: TestDocker } = {}
    beforeAll(async () => {
      if (start !== undefined) running.docker = await start()
    })
    afterAll(() => running.docker?.stop())

    describe.each(filters)('under %s', (filter) => {
      test.each(ROWS)('$id holds, or is refused', { timeout: 60_000 }, async (row) => {
        const filterCase: FilterCase = { values, filter, owner, env: running.docker?.env ?? {} }
        const tested = await tried(row, filterCase)
        if (!isRefused(tested)) return expect(brokenOf(row, tested, differs(filter))).toBeUndefined()
        expect(MAY_REFUSE).toContain(filter)
        if (row.id === 'files.protected') return
        const given = { ...filterCase, values: { ...values, protectNot: ['*'] }, ...(isRoot && { owner: OTHER }) }
        const rest = await tried(row, given)
        if (!isRefused(rest)) expect(brokenOf(row, rest, differs(filter))).toBeUndefined()
      })
    })

    test('who requires closed sockets is refused where they are open', async () => {
      const row = ROWS.find(({ id }) => id === 'files.make-sockets') as Row
      const required: SandboxInput = { ...values, require: ['sockets-closed'], protectNot: ['*'] }
      const filterCase: FilterCase = {
        values: required,
        filter: 'nested',
        env: running.docker?.env ?? {},
        ...(isRoot && { owner: OTHER }),
      }
      const { runs } = await tried(row, filterCase)
      expect(runs.map(({ refused }) => refused?.message)).toEqual([expect.stringContaining('sockets-closed')])
    })
  })
}
