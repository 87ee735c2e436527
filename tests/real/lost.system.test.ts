/**
 * PID 1 of a sandbox, or its launcher, is killed from outside: the report says whether the command had begun. A caller that
 * runs a command again after `setup` must never run it twice.
 */
import { chmodSync, copyFileSync, existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import { outcomeOfLaunch } from '../../src/backends/launch-status.ts'
import { nativeDirectory } from '../../src/os/native-programs.ts'
import { explainLost } from '../../src/report/explain-failure.ts'
import { ENGINES, makeTestSite, sh, type TestSite, words } from '../escape/chain.ts'
import { begin, planOnce } from '../escape/launch.ts'
import { runCli, startCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { runPart } from '../support/host-part.ts'
import { describeWith } from '../support/needs.ts'
import { commOf, descendantsOf, readOr, until } from '../support/processes.ts'
import { directoryWith } from './directory.ts'

/** PID 1 of a namespace below ours. */
const isInit = (pid: number): boolean => /^NSpid:\t\d+\t1$/m.test(readOr(`/proc/${pid}/status`))

const initBelow = (pid: number): Promise<number> => until('PID 1 of the sandbox', () => descendantsOf(pid).find(isInit))

/** Words of a command that counts how often it has begun. */
const COUNT = sh('echo printed; echo begun >>/zone/count; exec sleep 600')

const begun = ({ zone }: TestSite): string => readOr(join(zone, 'count'))
const whenBegun = (site: TestSite): Promise<true> => until('the command', () => begun(site) !== '' || undefined)

interface Call {
  readonly site: TestSite
  readonly home: string
  readonly options: readonly string[]
  readonly engine: (typeof ENGINES)[number]
}

const start = ({ site, home, options, engine }: Call, command: readonly string[]) =>
  startCli(words(site, { engine, options }, command), { cwd: site.base, env: { HOME: home, XDG_RUNTIME_DIR: home } })

/** As a caller that has this plan in the cache already, or not: then node starts launch. */
const WAYS = ['first', 'repeated'] as const
const CASES = ENGINES.flatMap((engine) => WAYS.map((way) => ({ engine, way })))

/** One run before it, so that the client finds a plan. It does not touch the count. */
async function prepareWay(call: Call, way: (typeof WAYS)[number]): Promise<void> {
  if (way === 'first') return
  const [shell = ''] = COUNT
  expect((await start(call, [shell, '-c', 'true'])).exitCode).toBe(0)
}

const TOLD =
  /^the end of the command is lost \(sandbox ended without a report\): it had begun, or may have, .* stays done$/

describeWith('userns', 'a run whose sandbox was killed from outside after its command had begun', () => {
  test.each(CASES)('is lost ($engine, $way run)', async ({ engine, way }) => {
    const site = await makeTestSite()
    const call = { site, home: await temporaryDirectory(), engine, options: ['--json'] }
    await prepareWay(call, way)
    const runner = start(call, COUNT)
    await whenBegun(site)
    process.kill(await initBelow(runner.pid ?? 0), 'SIGKILL')
    const { exitCode: status, stdout } = await runner
    const result = JSON.parse(stdout)
    expect({ status, ...result }).toMatchObject({
      status: 137,
      ok: false,
      reason: 'lost',
      exitCode: null,
      signal: null,
      stdout: 'printed\n',
      error: { code: 'BACKEND_FAILED', message: expect.stringMatching(TOLD) },
    })
    expect(begun(site)).toBe('begun\n')
  })

  test.each(ENGINES)('is lost when its launcher is killed (%s)', async (engine) => {
    const site = await makeTestSite()
    const runsDirectory = join(site.base, 'llm-do/runs')
    const launch = (await planOnce({ site, engine, command: COUNT, runsDirectory })).launch()
    const { started, end } = begin(launch)
    await whenBegun(site)
    process.kill(started.pid, 'SIGKILL')
    // Its cgroup is left to the janitor.
    onTestFinished(async () => void (await runPart('runs', ['prune', runsDirectory])))
    const { failure, ...outcome } = outcomeOfLaunch(await end)
    expect(outcome).toMatchObject({ reason: 'lost', exitCode: null })
    expect(failure && explainLost(failure).message).toContain('new files at protected names are renamed')
  })
})

describeWith('userns', 'a run whose sandbox was killed from outside before its command had begun', () => {
  // Stands still in the place of init, as one that has not come to the command yet.
  const STANDSTILL = '#!/bin/sh\nexec sleep 600\n'

  test.each(ENGINES)('was never set up (%s)', async (engine) => {
    const site = await makeTestSite()
    const directory = await temporaryDirectory({ mode: 0o755 })
    const program = join(directory, 'llm-do')
    copyFileSync(join(nativeDirectory(), 'llm-do'), program)
    chmodSync(program, 0o755)
    writeFileSync(join(directory, 'init'), STANDSTILL, { mode: 0o755 })
    const launch = { ...(await planOnce({ site, engine, command: COUNT })).launch(), file: program }
    const { started, end } = begin(launch)
    const init = await until('init', () =>
      descendantsOf(started.pid).find((pid) => isInit(pid) && commOf(pid) === 'sleep'),
    )
    process.kill(init, 'SIGKILL')
    const outcome = outcomeOfLaunch(await end)
    expect(outcome).toMatchObject({ reason: 'setup', exitCode: null, durationMs: 0 })
    expect(existsSync(join(site.zone, 'count'))).toBe(false)
  })
})

/* A runner that the machine keeps waiting learns of an end after the moment in which it would have had to stop the run. The report
 * decides then: a command that had ended was not stopped. */
/** Of the runner's waits: before, at and after the reports that the command has begun and ended. */
const WAITS = [4, 5, 6] as const
/** A run that is not stopped is over long before, on a busy machine too. */
const DEADLINE = '3s'
/** Longer than the deadline. */
const STALL_US = 4_000_000

/** Longer than a run takes; no deadline is near. */
const LOOK_US = 1_000_000

const ENDS = [
  { what: 'a missing command', command: ['nope'], status: 127 },
  { what: 'a failure', command: ['sh', '-c', 'exit 3'], status: 3 },
  { what: 'the deadline', command: ['sleep', '30'], status: 124 },
] as const

describeWith(['strace', 'userns'], 'a runner that wakes up too late', () => {
  test('tells how the command ended', async () => {
    const cwd = await directoryWith()
    const env = { HOME: await directoryWith() }
    // Only the second run of its kind is carried out by the traced process itself.
    await runCli(['--timeout', DEADLINE, '--', 'true'], { cwd, env })
    const cases = ENDS.flatMap((end) => WAITS.map((wait) => ({ ...end, wait })))
    const told = async ({ what, command, wait }: (typeof cases)[number]) => {
      const stall = `inject=poll:delay_exit=${STALL_US}:when=${wait}`
      const through = ['strace', '-o', '/dev/null', '-e', 'trace=poll', '-e', stall]
      const { status } = await runCli(['--timeout', DEADLINE, '--', ...command], { cwd, env, through })
      return { what, wait, status }
    }
    // They wait for their stalls side by side.
    expect(await Promise.all(cases.map(told))).toEqual(cases.map(({ what, wait, status }) => ({ what, wait, status })))
  })

  // Where the sandbox does not wait for the runner, all of it may be over before the runner looks for the first time.
  test.each(['unshare'])('reports a run that ended before the runner first looked, with engine %s', async (engine) => {
    const cwd = await directoryWith()
    await execa('git', ['init', '-q'], { cwd }) // Protected, so that a sweeper is started.
    const env = { HOME: await directoryWith() }
    const words = ['--engine', engine, '--rw', '.', '--', 'sh', '-c', 'exit 3']
    expect(await runCli(words, { cwd, env })).toMatchObject({ status: 3 })
    for (const wait of [1, 2, 3]) {
      const stall = `inject=wait4:delay_enter=${LOOK_US}:when=${wait}`
      const through = ['strace', '-o', '/dev/null', '-e', 'trace=wait4', '-e', stall]
      const { status, stderr } = await runCli(words, { cwd, env, through })
      expect({ wait, status, stderr: stderr.toString() }).toEqual({ wait, status: 3, stderr: '' })
    }
  })
})
