import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { mkdir, rmdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, onTestFinished, test } from 'vitest'
import { environmentOf, programFor } from './cli.ts'
import { temporaryDirectory } from './directory.ts'
import { expectNothingLeft, newMark, takeSnapshot } from './leftovers.ts'
import { describeWith } from './needs.ts'
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
  await expect.poll(isThere).toBe(true)
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

/** A home that the test file's directory does not hold. */
function foreignHome(): string {
  const home = mkdtempSync(join(tmpdir(), '../home-'))
  onTestFinished(() => rmSync(home, { recursive: true }))
  return home
}

/** Both names of the client. */
type Words = readonly ['llm-do' | 'llm-do-exec', ...string[]]
const LONG: Words = ['llm-do', 'exec', '--']
const SHORT: Words = ['llm-do-exec', '--']

/**
 * Runs `llm-do exec` until the test is over, by the client alone and without a parent among the processes of this test file.
 * @returns how the id of the run ends
 */
async function startForeignRun(environment: NodeJS.ProcessEnv, by: Words): Promise<string> {
  const words = [programFor(currentUser(), by[0]), ...by.slice(1)]
  const options = { cwd: '/', env: { PATH: process.env.PATH, HOME: foreignHome(), ...environment }, extendEnv: false }
  await execa(words[0]!, [...words.slice(1), 'true'], options) // Node leaves the plan to the client.
  const command = [...words, 'sh', '-c', 'echo here; exec sleep 300']
  const runner = execa('setsid', ['--fork', 'sh', '-c', 'echo $$; exec "$@"', 'sh', ...command], options)
  const said: string[] = []
  runner.stdout.on('data', (chunk: Buffer) => said.push(String(chunk)))
  onTestFinished(async () => {
    const pid = Number.parseInt(said.join(''), 10)
    process.kill(pid, 'SIGTERM')
    await expect.poll(() => existsSync(`/proc/${pid}`)).toBe(false)
    await runner
  })
  await expect.poll(() => said.join('')).toContain('here\n')
  return said.join('').split('\n')[0] ?? ''
}

describeWith('userns', 'a run that lives on', () => {
  test.each([
    ['is not counted when it is of another test file', {}, LONG, false],
    ['is not counted, by the other name', {}, SHORT, false],
    ['is counted when it is of this one', environmentOf(currentUser()), LONG, true],
  ] as const)('%s', async (_what, environment, by, isCounted) => {
    const mark = newMark()
    const before = await takeSnapshot({ mark })
    const pid = await startForeignRun(environment, by)
    const left = await expectNothingLeft({ before, mark, graceMs: 100 }).catch((error: Error) => error.message)
    // Others end their runs at this moment.
    expect(new RegExp(`/(?:llm-do-)?[0-9a-f]+${pid}$`, 'm').test(left ?? '')).toBe(isCounted)
  })
})
