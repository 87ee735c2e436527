import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdir, rmdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, onTestFinished, test } from 'vitest'
import { temporaryDirectory } from './directory.ts'
import { expectNothingLeft, newMark, takeSnapshot } from './leftovers.ts'
import { currentUser } from './users.ts'

/** Leaves something, and gives the words by which it must be named. */
type Leave = (mark: string, runs: string) => Promise<string> | string

async function leaveParentOfMark(mark: string): Promise<string> {
  const script = 'read -r mark; sleep 600 & env MARK="$mark" sleep 600 & wait'
  const env = { PATH: process.env.PATH }
  const parent = spawn('sh', ['-c', script], { env, detached: true, stdio: ['pipe', 'ignore', 'ignore'] })
  onTestFinished(() => void process.kill(-(parent.pid ?? 0), 'SIGKILL'))
  parent.stdin?.end(`${mark}\n`)
  const isThere = async (): Promise<boolean> => (await takeSnapshot({ mark })).processes.length === 3
  await expect.poll(isThere, { timeout: 10_000 }).toBe(true)
  return `${parent.pid} sh`
}

function leaveProcess(mark: string): string {
  const child = spawn('sleep', ['600'], { env: { MARK: mark }, detached: true, stdio: 'ignore' })
  onTestFinished(() => void child.kill('SIGKILL'))
  return `${child.pid} sleep`
}

async function leaveMount(mark: string): Promise<string> {
  const directory = await temporaryDirectory()
  await execa('mount', ['-t', 'tmpfs', `llm-do-${mark}`, directory])
  onTestFinished(async () => void (await execa('umount', [directory])))
  return directory
}

async function leaveDirectory(path: string): Promise<string> {
  await mkdir(path)
  onTestFinished(() => rmdir(path))
  return path
}

async function leaveRecord(runs: string): Promise<string> {
  await writeFile(join(runs, 'r-1'), '')
  return join(runs, 'r-1')
}

const CGROUPS = /^\S+ \S+ \S+ \S+ (\S+) rw\S* (?:.* )?- cgroup2 \S+ rw/m.exec(
  readFileSync('/proc/self/mountinfo', 'utf8'),
)?.[1]
const isRoot = currentUser() === 'root'

const LEFT: readonly (readonly [what: string, canBe: boolean, leave: Leave])[] = [
  ['a process that outlives its run', true, leaveProcess],
  ['a process without the mark, by the child that carries it', true, leaveParentOfMark],
  ['a record of a run that is over', true, (_mark, runs) => leaveRecord(runs)],
  ['a temporary directory', true, (mark) => leaveDirectory(join(tmpdir(), `llm-do-leftover-${mark}`))],
  [
    'a cgroup without processes',
    isRoot && CGROUPS !== undefined,
    () => leaveDirectory(join(CGROUPS ?? '', `llm-do-${process.pid}left`)),
  ],
  ['a mount', isRoot, leaveMount],
]

describe('what a run leaves is named', () => {
  test.for(LEFT)('%s', async ([_what, canBe, leave], { skip }) => {
    skip(!canBe, 'needs root and a cgroup v2 that can be written')
    const mark = newMark()
    const runsDirectories = [await temporaryDirectory()]
    const before = await takeSnapshot({ mark, runsDirectories })
    await expectNothingLeft({ before, mark, runsDirectories })
    const named = await leave(mark, runsDirectories[0]!)
    await expect(expectNothingLeft({ before, mark, runsDirectories, graceMs: 100 })).rejects.toThrow(named)
  })
})
