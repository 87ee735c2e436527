/** A run that is to end with the process that started it, whatever its command ignores: by node, by the client, and out of a pool. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readlinkSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startPool } from '../pool/pool.ts'
import { type CliOptions, cliWords, runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { expectNothingLeft, newMark, takeSnapshot } from '../support/leftovers.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { childrenOf } from '../support/processes.ts'
import { currentUser, type User } from '../support/users.ts'

const DEAF = 'trap "" HUP TERM PIPE; echo up; while :; do sleep 1; done'

async function callOf(as: User) {
  const runtime = await temporaryDirectory({ owner: as })
  const call: CliOptions = {
    as,
    cwd: await temporaryDirectory({ owner: as, mode: 0o755 }),
    env: { HOME: await temporaryDirectory({ owner: as }), XDG_RUNTIME_DIR: runtime },
  }
  return { call, runsDirectories: [join(runtime, 'llm-do/runs')] }
}

/** A command that ignores everything, below a shell; its input stays open, which is ours. */
async function startBelowShell(options: readonly string[], mark: string, { as, cwd, env }: CliOptions) {
  const words = cliWords([...options, '--', 'sh', '-c', DEAF, mark], as === undefined ? {} : { as })
  const shell = spawn('sh', ['-c', '"$@"; exit', 'sh', ...words], {
    cwd,
    env: { PATH: process.env.PATH, ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  await once(shell.stdout, 'data')
  const [runner = 0] = childrenOf(shell.pid ?? 0)
  onTestFinished(() => {
    for (const pid of [shell.pid ?? 0, runner]) tryToEnd(pid)
  })
  const program = basename(readlinkSync(`/proc/${runner}/exe`))
  const killShell = async () => {
    shell.kill('SIGKILL')
    await once(shell, 'exit')
  }
  return { runner, program, killShell }
}

function tryToEnd(pid: number): void {
  try {
    process.kill(pid, 'SIGTERM')
  } catch {
    // It has ended, as it should.
  }
}

/** Node runs the first command of its kind, and leaves its plan to the client as soon as its places have settled. */
const MOST_RUNS = 5

describeWith('userns', 'a run under the profile mcp', () => {
  const as = currentUser()
  describe(`of ${as}`, () => {
    test('ends with what started it, and goes on where it is not to', async () => {
      const { call, runsDirectories } = await callOf(as)
      const own = newMark()
      const beforeAll = await takeSnapshot({ mark: own, runsDirectories })
      const other = await startBelowShell(['--timeout', 'none'], own, call)
      await other.killShell()
      const programs: string[] = []
      while (!programs.includes('llm-do-exec') && programs.length < MOST_RUNS) {
        const mark = newMark()
        const before = await takeSnapshot({ mark, runsDirectories })
        const { program, killShell } = await startBelowShell(['--profile', 'mcp'], mark, call)
        programs.push(program)
        await killShell()
        await expectNothingLeft({ before, mark, runsDirectories })
      }
      expect(new Set(programs)).toEqual(new Set(['node', 'llm-do-exec']))
      expect((await takeSnapshot({ mark: own })).processes).not.toEqual([])
      process.kill(other.runner, 'SIGTERM')
      await expectNothingLeft({ before: beforeAll, mark: own, runsDirectories })
    })

    test('ends with it in a sandbox of a pool, too', async () => {
      const pool = await startPool({ as, options: ['--profile', 'mcp'] })
      let isWarm = false
      // The first run leaves the plan by which the client finds the pool, which others on this machine may empty.
      for (let left = MOST_RUNS; !isWarm && left > 0; left -= 1) {
        const mark = newMark()
        const ready = await pool.whenReady()
        const { killShell } = await startBelowShell(pool.options, mark, pool.call)
        const names = await pool.names()
        isWarm = ready.some((name) => !names.includes(name))
        await killShell()
        await expect.poll(async () => (await takeSnapshot({ mark })).processes).toEqual([])
      }
      expect(isWarm).toBe(true)
    })
  })
})

testWith('root', 'whose starter is in another pid namespace says that it cannot see its end', async () => {
  const { call } = await callOf('root')
  const through = ['unshare', '--pid', '--fork', '--mount-proc']
  for (const _ of ['planned', 'kept']) {
    const { status, stderr } = await runCli(['--die-with-parent', '--', 'true'], { ...call, through })
    expect(stderr.toString()).toMatch(
      /^llm-do: warning: dieWithParent: the program that started llm-do is in another pid namespace/,
    )
    expect(status).toBe(0)
  }
})
