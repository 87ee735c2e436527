/** A launcher that is killed sweeps nothing: another process of the run does, and what the command made at protected names is set aside. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startPool } from '../pool/pool.ts'
import { cliWords } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { childrenOf, commOf, descendantsOf, readOr, until } from '../support/processes.ts'

/** Waits for a word, then makes a name that is watched and a repository that only a walk would find. */
const ATTACK =
  'echo begun; while [ ! -e go ]; do sleep 0.02; done; mkdir .vscode; mkdir -p a/b; cp -r . a/b/.git; echo >done; exec sleep 60'
const MADE = ['.vscode', 'a/b/.git'] as const

interface Started {
  readonly zone: string
  readonly launcher: number
  readonly sweeper: number
}

/** The process that has the sweeper as its child: launch, or the client that is launch itself. */
const launcherBelow = (pid: number): number | undefined =>
  [pid, ...descendantsOf(pid)].find((one) => childrenOf(one).some((child) => commOf(child) === 'sweeper'))

async function begin(words: readonly string[], { zone, env }: { zone: string; env: NodeJS.ProcessEnv }) {
  const [file = '', ...argv] = cliWords([...words, '--', 'sh', '-c', ATTACK])
  const child = spawn(file, argv, { cwd: zone, env, stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  return child
}

async function started(child: ChildProcess, zone: string, above = child.pid ?? 0): Promise<Started> {
  const launcher = await until('a sweeper', () => launcherBelow(above))
  return { zone, launcher, sweeper: childrenOf(launcher).find((pid) => commOf(pid) === 'sweeper') ?? 0 }
}

/** Stopped, it sees nothing of what is made; then it is killed. */
async function killAround({ zone, launcher }: Started): Promise<void> {
  process.kill(launcher, 'SIGSTOP')
  writeFileSync(join(zone, 'go'), '')
  await until('what the command makes', () => existsSync(join(zone, 'done')) || undefined)
  process.kill(launcher, 'SIGKILL')
}

const namesOf = (zone: string): readonly string[] => MADE.filter((name) => existsSync(join(zone, name)))
const asideOf = (zone: string): number =>
  (readdirSync(zone, { recursive: true }) as string[]).filter((name) =>
    /(\.vscode|b\/\.git)\.set-aside\.[^/]+$/.test(name),
  ).length

async function expectSwept({ zone, sweeper }: Started): Promise<void> {
  await until('the end of the sweeper', () => commOf(sweeper) !== 'sweeper' || isGone(sweeper) || undefined)
  expect({ left: namesOf(zone), aside: asideOf(zone) }).toEqual({ left: [], aside: MADE.length })
}

const isGone = (pid: number): boolean => !/^State:\t[RSDT]/m.test(readOr(`/proc/${pid}/status`))

const surroundings = (home: string) => ({ PATH: process.env['PATH'], HOME: home, XDG_RUNTIME_DIR: home })

/** As a caller that has this plan in the cache already, or not: then node starts launch. */
async function cold(isCached: boolean): Promise<Started> {
  const zone = await temporaryDirectory({ mode: 0o755 })
  const env = surroundings(await temporaryDirectory())
  const words = ['--engine', 'unshare', '--rw', '.']
  if (isCached) {
    const [file = '', ...argv] = cliWords([...words, '--', 'sh', '-c', 'true'])
    await once(spawn(file, argv, { cwd: zone, env, stdio: 'ignore' }), 'close')
  }
  return started(await begin(words, { zone, env }), zone)
}

describeWith('userns', 'where the launcher is killed', () => {
  test.each([false, true])('what the command made is set aside (planned before: %s)', async (isCached) => {
    const run = await cold(isCached)
    await killAround(run)
    await expectSwept(run)
  })

  test('what the command of a warm sandbox made is set aside', async () => {
    const pool = await startPool({ options: ['--rw', '.'], size: 1 })
    await pool.runWarm(['sh', '-c', 'true'])
    await pool.whenReady()
    const child = await begin(pool.options, { zone: pool.cwd, env: { PATH: process.env['PATH'], ...pool.call.env } })
    const run = await started(child, pool.cwd, pool.keeper.pid)
    await killAround(run)
    await expectSwept(run)
  })

  test('control: without the other process it stays', async () => {
    const run = await cold(true)
    process.kill(run.sweeper, 'SIGKILL')
    await killAround(run)
    await until('the end of the launcher', () => isGone(run.launcher) || undefined)
    expect(namesOf(run.zone)).toEqual(MADE)
  })
})

describeWith('userns', 'where no process is killed', () => {
  test('no such process is left', async () => {
    const run = await cold(true)
    process.kill(run.launcher, 'SIGTERM')
    await until('the end of both', () => (isGone(run.launcher) && isGone(run.sweeper)) || undefined)
    expect(readdirSync(run.zone)).toEqual([])
  })

  test('there is none where nothing is protected', async () => {
    const env = surroundings(await temporaryDirectory())
    const zone = await temporaryDirectory({ mode: 0o755 })
    const child = await begin(['--rw', '.', '--protect-not', '*'], { zone, env })
    expect(launcherBelow(child.pid ?? 0)).toBeUndefined()
  })
})
