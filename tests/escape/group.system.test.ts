/** The cgroup of a run: its limits, and the record that the janitor finds it by, which goes last. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import type { NativeLaunch } from '../../src/backends/launch.ts'
import { until } from '../pool/pool.ts'
import { partWords, runPart } from '../support/host-part.ts'
import { kernelThat } from '../support/kernel.ts'
import { describeWith } from '../support/needs.ts'
import { makeTestSite, sh } from './chain.ts'
import { planOnce, supervised } from './launch.ts'
import { withRecords } from './unguarded.ts'

/** unlinkat with AT_REMOVEDIR, fcntl.h: what rmdir is. */
const busyDirectories = () =>
  kernelThat([{ refuses: ['unlinkat'], with: 'EBUSY', from: { argument: 2, value: 0x200 } }])

/** Pairs of words, each ended by NUL. */
const groupOf = (record: string): string => /(?:^|\0)cgroup\0([^\0]*)/.exec(readFileSync(record, 'utf8'))?.[1] ?? ''

/** A janitor at work holds the lock of a dead record, as the launcher of a live run does: neither ps nor kill may take one for the other. */
async function expectNotListed(runsDirectory: string, id: string): Promise<void> {
  const runs = (...words: readonly string[]) => runPart('runs', words)
  const record = join(runsDirectory, id)
  const janitor = execa('flock', ['--exclusive', '--no-fork', record, 'sleep', '60'], { reject: false })
  try {
    await until(
      async () => (await execa('flock', ['--nonblock', record, 'true'], { reject: false })).exitCode === 1 || undefined,
      'the lock',
    )
    // To root the list shows the runs of all users, and tests of another user may run at the same time.
    expect((await runs('list', runsDirectory)).stdout).not.toContain(id)
    expect((await runs('kill', runsDirectory, id)).exitCode).toBe(1)
    // The control: without the janitor's mark it is listed.
    const marked = readFileSync(record, 'utf8')
    writeFileSync(record, marked.replace(/dead\x001\x00$/, ''))
    expect((await runs('list', runsDirectory)).stdout).toContain(`"id":"${id}"`)
    writeFileSync(record, marked)
  } finally {
    janitor.kill('SIGKILL')
    await janitor
  }
}

describeWith(['root', 'gcc', 'userns'], 'a run’s cgroup', () => {
  test('that cannot be removed stays on record until prune removes both', async () => {
    const site = await makeTestSite()
    const runsDirectory = join(site.base, 'llm-do/runs')
    const planned = await planOnce({ site, engine: 'unshare', command: sh('exit 7'), runsDirectory })
    expect((await planned.run()).outcome).toMatchObject({ reason: 'exit', exitCode: 7 })
    expect(readdirSync(runsDirectory)).toEqual([])

    const [file, filter] = await busyDirectories()
    const outcome = await supervised(planned.launch(), [file, filter])
    const prune = () => runPart('runs', ['prune', runsDirectory])
    onTestFinished(async () => void (await prune()))
    expect(outcome).toMatchObject({ reason: 'exit', exitCode: 7 })
    const records = readdirSync(runsDirectory)
    expect(records).toHaveLength(1)
    const group = groupOf(join(runsDirectory, ...records))
    expect(existsSync(group)).toBe(true)
    await execa(file, [filter, ...partWords('runs', ['prune', runsDirectory])])
    expect([existsSync(group), readdirSync(runsDirectory)]).toEqual([true, records])
    await expectNotListed(runsDirectory, records[0] ?? '')
    await prune()
    expect([existsSync(group), readdirSync(runsDirectory)]).toEqual([false, []])
  })
})

/** With a limit that is narrower for the stager. */
const narrowed = (launch: NativeLaunch, value: string): NativeLaunch =>
  withRecords(launch, (records) => [...records, ['narrow', FILE, value]])

/** Content of a file of the run's group; empty before the group exists. */
function settingOf(runsDirectory: string, file: string): string {
  const [record] = existsSync(runsDirectory) ? readdirSync(runsDirectory) : []
  const path = record === undefined ? '' : join(groupOf(join(runsDirectory, record)), file)
  return existsSync(path) ? readFileSync(path, 'utf8').trim() : ''
}

/** Any group has this file; limits of a controller are the business of tests/vm. */
const FILE = 'cgroup.max.depth'

describeWith(['root', 'userns'], 'what a limit holds more for the stager', () => {
  test('is taken away when that has gone, while the command runs', async () => {
    const site = await makeTestSite()
    const runsDirectory = join(site.base, 'llm-do/runs')
    const command = sh('until [ -e /zone/seen ]; do sleep 0.05; done; exit 7')
    const planned = await planOnce({ site, engine: 'unshare', command, runsDirectory })
    const launch = narrowed(planned.launch(), '3')
    const run = supervised(launch)
    await until(async () => (settingOf(runsDirectory, FILE) === '3' ? true : undefined), 'the narrower limit')
    writeFileSync(join(site.zone, 'seen'), '')
    expect(await run).toMatchObject({ reason: 'exit', exitCode: 7 })
  })

  test('ends the run where it cannot be taken away', async () => {
    const planned = await planOnce({ site: await makeTestSite(), engine: 'unshare', command: ['sleep', '60'] })
    const launch = narrowed(planned.launch(), 'nothing')
    const failure = { step: 'launch: set limit', path: FILE, errno: 'EINVAL' }
    // The stager is reaped at the moment when the command begins; one that had begun is lost, and no failure of the setup.
    const reason = expect.stringMatching(/^(setup|lost)$/)
    expect(await supervised(launch)).toMatchObject({ reason, exitCode: null, failure })
  })
})
