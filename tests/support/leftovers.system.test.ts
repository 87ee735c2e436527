import { spawn } from 'node:child_process'
import { mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryDirectory } from './directory.ts'
import { expectNothingLeft, newMark, takeSnapshot } from './leftovers.ts'
import { describeWith, testWith } from './needs.ts'
import { checkoutFor, currentUser } from './users.ts'

test('a run that leaves nothing passes', async () => {
  const mark = newMark()
  const before = await takeSnapshot({ mark })
  await expectNothingLeft({ before, mark })
})

test('a process that outlives its run is named', async () => {
  const mark = newMark()
  const before = await takeSnapshot({ mark })
  const child = spawn('sleep', ['600'], { env: { MARK: mark }, detached: true, stdio: 'ignore' })
  onTestFinished(() => void child.kill('SIGKILL'))
  await expect(expectNothingLeft({ before, mark, graceMs: 100 })).rejects.toThrow(`${child.pid} sleep`)
})

test('a process without the mark is found by the child that carries it', async () => {
  const mark = newMark()
  const before = await takeSnapshot({ mark })
  const script = 'read -r mark; sleep 600 & env MARK="$mark" sleep 600 & wait'
  const parent = spawn('sh', ['-c', script], {
    env: { PATH: process.env.PATH },
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  onTestFinished(() => void process.kill(-(parent.pid ?? 0), 'SIGKILL'))
  parent.stdin?.end(`${mark}\n`)
  const isThere = async (): Promise<boolean> => (await takeSnapshot({ mark })).processes.length === 3
  await expect.poll(isThere, { timeout: 10_000 }).toBe(true)
  await expect(expectNothingLeft({ before, mark, graceMs: 100 })).rejects.toThrow(`${parent.pid} sh`)
})

test('a record of a run that is over is named', async () => {
  const mark = newMark()
  const runs = await temporaryDirectory()
  const before = await takeSnapshot({ mark, runsDirectories: [runs] })
  await writeFile(join(runs, 'r-1'), '')
  const left = expectNothingLeft({ before, mark, runsDirectories: [runs], graceMs: 100 })
  await expect(left).rejects.toThrow(join(runs, 'r-1'))
})

test('a temporary directory that stays is named', async () => {
  const mark = newMark()
  const before = await takeSnapshot({ mark })
  const directory = join(tmpdir(), `llm-do-leftover-${mark}`)
  await mkdir(directory)
  onTestFinished(() => rmdir(directory))
  await expect(expectNothingLeft({ before, mark, graceMs: 100 })).rejects.toThrow(directory)
})

testWith('root', 'a cgroup that stays is named, though no process lives in it', async ({ skip }) => {
  const mark = newMark()
  const before = await takeSnapshot({ mark })
  const root = /^\S+ \S+ \S+ \S+ (\S+) .* - cgroup2 /m.exec(await readFile('/proc/self/mountinfo', 'utf8'))?.[1]
  if (root === undefined) return skip('there is no cgroup v2 here')
  const group = join(root, `llm-do-${process.pid}left`)
  const error = await mkdir(group).catch((cause: NodeJS.ErrnoException) => cause)
  if (error instanceof Error && error.code === 'EROFS') return skip('cgroup v2 is read-only here')
  expect(error).toBeUndefined()
  onTestFinished(() => rmdir(group))
  await expect(expectNothingLeft({ before, mark, graceMs: 100 })).rejects.toThrow(group)
})

const RUNS = currentUser() === 'root' ? '/run/llm-do/runs' : `/tmp/llm-do-${process.getuid?.()}/runs`

/** A run that this process did not start, as far as /proc tells, in a directory that is not a test's; its record's path. */
async function startOutside(env: NodeJS.ProcessEnv): Promise<string> {
  const records = (): Promise<readonly string[]> => readdir(RUNS).catch(() => [])
  const known = await records()
  const program = join(checkoutFor(currentUser()), 'bin/llm-do')
  // The shell between is the runner's living parent, and has none itself.
  const script = `cd /; setsid sh -c '"$0" exec -- sleep 61.5; :' "$0" >&- 2>&- <&- &`
  const { PATH } = process.env
  await execa('sh', ['-c', script, program], { env: { PATH, ...env }, extendEnv: false, stdio: 'ignore' })
  const find = async () => {
    for (const name of await records()) {
      const words = (await readFile(join(RUNS, name), 'utf8').catch(() => '')).split('\0')
      if (!known.includes(name) && words.includes('61.5')) return { name, pid: Number(words[words.indexOf('pid') + 1]) }
    }
    return undefined
  }
  await expect.poll(find, { timeout: 20_000 }).toBeDefined()
  const { name, pid } = (await find())!
  onTestFinished(async () => {
    process.kill(pid, 'SIGTERM')
    await expect.poll(records, { timeout: 10_000 }).not.toContain(name)
  })
  return join(RUNS, name)
}

describeWith(['userns'], 'a live run', () => {
  test('of another user, as this user, is no leftover here', async () => {
    const mark = newMark()
    const before = await takeSnapshot({ mark })
    await startOutside({})
    await expectNothingLeft({ before, mark, graceMs: 1_000 })
  })

  test('that this file has started is named, whatever its parent is', async () => {
    const mark = newMark()
    const before = await takeSnapshot({ mark })
    const record = await startOutside({ MARK: process.env.TMPDIR })
    await expect(expectNothingLeft({ before, mark, graceMs: 100 })).rejects.toThrow(`records: ${record}`)
  })
})

testWith('root', 'a mount that stays is named', async () => {
  const mark = newMark()
  const before = await takeSnapshot({ mark })
  const directory = await temporaryDirectory()
  await execa('mount', ['-t', 'tmpfs', `llm-do-${mark}`, directory])
  onTestFinished(async () => void (await execa('umount', [directory])))
  await expect(expectNothingLeft({ before, mark, graceMs: 100 })).rejects.toThrow(directory)
})
