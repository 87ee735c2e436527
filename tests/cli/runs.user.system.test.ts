/** Live runs and pools as people see and end them: `ps`, `kill`, `pool stop`. */
import { readFileSync, rmSync, symlinkSync } from 'node:fs'
import { describe, expect, onTestFinished, test } from 'vitest'
import { isAlive, keepers, startPool } from '../pool/pool.ts'
import { runCli, startCli } from '../support/cli.ts'
import { cliHere } from '../support/cli-here.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { callers, currentUser, PLAIN_ID, type User, uidOf } from '../support/users.ts'

interface Listed {
  readonly id: string
  readonly pid: number
  readonly started: number
  readonly uid: number
  readonly user: string
  readonly directory: string
  readonly profile: string
  readonly command: readonly string[]
}

/** The name of an account, or its number where it has none. */
function accountOf(uid: number): string {
  const accounts = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
  return accounts.find(([, , id]) => id === String(uid))?.[0] ?? String(uid)
}

/** Asked again and again: without the start of a node where that is the caller's own list. */
async function ps(as: User): Promise<readonly Listed[]> {
  const words = ['ps', '--json']
  const here = as === currentUser()
  const { stdout } = await (here ? cliHere(words, { cwd: '/', env: {} }) : runCli(words, { program: 'llm-do', as }))
  return JSON.parse(stdout.toString())
}

const kill = async (as: User, ...words: readonly string[]) => {
  const { status, stderr } = await runCli(['kill', ...words], { program: 'llm-do', as })
  return { status, err: stderr.toString() }
}

/** A run that lasts, in a new directory, in the list of its user; ended with the test. */
async function longRun(as: User, options: readonly string[] = []) {
  const cwd = await temporaryDirectory({ owner: as, mode: 0o755 })
  const child = startCli([...options, '--', 'sleep', '300'], { as, cwd })
  const own = async () => (await ps(as)).find(({ directory }) => directory === cwd)
  await expect.poll(own).toBeDefined()
  return { cwd, child, listed: (await own()) as Listed, own }
}

describeWith('userns', 'a live run', () => {
  describe.each(callers())('of %s', (as) => {
    test.each([
      ['passed through', []],
      ['captured', ['--json']],
    ])('is listed with directory, user, age, profile and command when its output is %s', async (_, options) => {
      const before = Math.floor(Date.now() / 1000)
      const { cwd, listed } = await longRun(as, [
        ...'--profile strict --timeout 5m --ro /etc/hosts'.split(' '),
        ...options,
      ])
      expect(listed).toMatchObject({ directory: cwd, uid: uidOf(as), profile: 'strict', command: ['sleep', '300'] })
      expect(listed.started).toBeGreaterThanOrEqual(before)
      expect(listed.user).toBe(accountOf(uidOf(as)))
      const { stdout } = await runCli(['ps'], { program: 'llm-do', as })
      const [header = '', ...rows] = stdout.toString().trimEnd().split('\n')
      expect(header.split(/ +/)).toEqual(['ID', 'NAME', 'PID', 'USER', 'AGE', 'PROFILE', 'DIRECTORY', 'COMMAND'])
      expect(rows.find((row) => row.includes(cwd))?.split(/ {2,}/)).toEqual([
        listed.id,
        '-',
        `${listed.pid}`,
        listed.user,
        expect.stringMatching(/^\d+[smh]$/),
        'strict',
        cwd,
        'sleep 300',
      ])
    })

    // By the beginning of its ID: kill.test.ts.
    test('is ended by its ID, and several at once', async () => {
      const [one, two] = [await longRun(as), await longRun(as)]
      expect(await kill(as, one.listed.id, two.listed.id)).toEqual({
        status: 0,
        err: `llm-do: run ${one.listed.id} was ended\nllm-do: run ${two.listed.id} was ended\n`,
      })
      expect((await Promise.all([one.child, two.child])).map(({ signal }) => signal)).toEqual(['SIGTERM', 'SIGTERM'])
    })
  })
})

describeWith(['userns', 'root', 'plain-user'], 'root', () => {
  test("sees another user's run, and does not end it by what its record says", async () => {
    const { listed, cwd, own } = await longRun('plain')
    const seen = (await ps('root')).find(({ id }) => id === listed.id)
    expect(seen).toEqual(listed)
    expect(await kill('root', listed.id)).toEqual({
      status: 125,
      err: `llm-do: error RUN_NOT_FOUND: run ${listed.id} is another user's, who alone can end or change it.\nllm-do: hint: llm-do ps\n`,
    })
    expect(await own()).toMatchObject({ directory: cwd })
  })

  test("follows no link to another user's records", async () => {
    const { listed } = await longRun('plain')
    const link = `/tmp/llm-do-${PLAIN_ID}99`
    symlinkSync(`/tmp/llm-do-${PLAIN_ID}`, link)
    onTestFinished(() => rmSync(link))
    expect((await ps('root')).filter(({ id }) => id === listed.id)).toHaveLength(1)
  })
})

describeWith('userns', 'pool stop', () => {
  test('ends the pools of the directory it is called in, and no other', async () => {
    const [here, there] = [await startPool({ size: 1 }), await startPool({ size: 1 })]
    const stop = (cwd: string) => runCli(['pool', 'stop'], { ...here.call, cwd, env: { ...here.call.env } })
    expect((await stop(here.cwd)).stdout.toString()).toBe('1 pool stopped\n')
    expect([isAlive(here.keeper.pid), isAlive(there.keeper.pid)]).toEqual([false, true])
    const again = await runCli(['pool', 'stop'], { ...there.call, cwd: here.cwd })
    expect([again.status, again.stdout.toString()]).toEqual([0, '0 pools stopped\n'])
    expect(again.stderr.toString()).toMatch(/none is kept for .*; \d+ for other directories \(llm-do pool stop --all\)/)
    expect(isAlive(there.keeper.pid)).toBe(true)
  })

  // As root all pools lie in one place, other tests' too.
  testWith('plain-user', 'ends all of them with --all', async () => {
    const pool = await startPool({ size: 1, as: 'plain' })
    const { stdout } = await runCli(['pool', 'stop', '--all'], { ...pool.call, cwd: '/' })
    expect(stdout.toString()).toBe('1 pool stopped\n')
    expect([isAlive(pool.keeper.pid), await keepers(pool.call)]).toEqual([false, []])
  })
})
