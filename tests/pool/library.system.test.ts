/** openSandbox: each run gets a fresh sandbox, of the present plan, with the same walls as a run without it. */
import { readdirSync } from 'node:fs'
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import { observeForDoctor } from '../../src/doctor/checks.ts'
import { CONTRACT } from '../../src/doctor/rows/index.ts'
import { tryRow } from '../../src/doctor/self-test.ts'
import { runsDirectory } from '../../src/host/own-directory.ts'
import { openSandbox, type Sandbox } from '../../src/pool/sandbox.ts'
import { expectedKind } from '../escape/rows.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { childrenOf, commOf, descendantsOf, readOr } from '../support/processes.ts'
import { checkoutFor, currentUser } from '../support/users.ts'
import { warmRunner } from './contract.ts'
import { until } from './pool.ts'

/** More on one object are a leak to Node, which says so on stderr. */
const MOST_LISTENERS = 10

/** Longer than a plan is wary of files that have just been written. */
const SETTLED_MS = 80

const whenReady = (sandbox: Sandbox, count = 1) =>
  until(async () => (sandbox.ready() >= count ? true : undefined), `${count} sandboxes ready`)

/** Of the launchers whose records lie among those of this user's runs. */
function recordedPids(): readonly number[] {
  const runs = runsDirectory(process.env, process.getuid?.() ?? -1)
  return readdirSync(runs).map((name) => Number(/\0pid\0(\d+)\0/.exec(readOr(join(runs, name)))?.[1]))
}

const openDescriptors = (): number => readdirSync('/proc/self/fd').length

describeWith(['bwrap', 'userns'], 'an open sandbox', () => {
  test('runs each command in a fresh sandbox, with stdin, both streams and its exit code', async () => {
    await using sandbox = await openSandbox({ cwd: await temporaryDirectory({ mode: 0o755 }), warm: 2 })
    await whenReady(sandbox, 2)
    const first = { command: ['sh', '-c', 'cat; echo err >&2; echo x > /tmp/left; exit 3'], stdin: Buffer.from('in') }
    expect(await sandbox.exec(first)).toMatchObject({ exitCode: 3, stdout: 'in', stderr: 'err\n', reason: 'exit' })
    expect(sandbox.served()).toEqual({ warm: 1, cold: 0 })
    await whenReady(sandbox)
    expect(await sandbox.exec({ command: ['ls', '-A', '/tmp'] })).toMatchObject({ exitCode: 0, stdout: '' })
  })

  test('is opened once for many commands, and Node has nothing to warn of', async () => {
    const warnings: Error[] = []
    const note = (warning: Error) => warnings.push(warning)
    process.on('warning', note)
    onTestFinished(() => void process.off('warning', note))
    await using sandbox = await openSandbox({ cwd: await temporaryDirectory({ mode: 0o755 }), warm: 1 })
    for (let left = MOST_LISTENERS + 1; left > 0; left -= 1) {
      await whenReady(sandbox)
      expect(await sandbox.exec({ command: ['true'] })).toMatchObject({ exitCode: 0 })
    }
    await whenReady(sandbox)
    expect(warnings).toEqual([])
  })

  test('serves a run under a filter that refuses what waiting for a command needs', async () => {
    const cwd = await temporaryDirectory({ mode: 0o755 })
    const seccomp = join(cwd, 'filter.json')
    const names = ['recvmsg', 'dup3', 'close_range', 'chdir', 'prlimit64']
    await writeFile(seccomp, JSON.stringify({ deny: [{ names, errno: 'EPERM' }] }))
    await sleep(SETTLED_MS)
    await using sandbox = await openSandbox({ cwd, warm: 1, policy: { seccomp } })
    await whenReady(sandbox)
    expect(await sandbox.exec({ command: ['echo', 'served'] })).toMatchObject({ stdout: 'served\n', exitCode: 0 })
    expect(sandbox.served()).toEqual({ warm: 1, cold: 0 })
  })

  test.each([0, 2])('sees a profile that was edited in its next run, with %d kept ready', async (warm) => {
    const cwd = await temporaryDirectory({ mode: 0o755 })
    const profile = join(await temporaryDirectory({ mode: 0o755 }), 'mine.yaml')
    const write = (word: string) => writeFile(profile, `sandbox: { env: { set: { WORD: ${word} } } }\n`)
    const command = ['sh', '-c', 'echo $WORD']
    await write('first')
    await sleep(SETTLED_MS)
    await using sandbox = await openSandbox({ cwd, profile, warm })
    await whenReady(sandbox, warm)
    for (const _ of [1, 2]) expect(await sandbox.exec({ command })).toMatchObject({ stdout: 'first\n' })
    await write('other')
    expect(await sandbox.exec({ command })).toMatchObject({ stdout: 'other\n' })
    await whenReady(sandbox, warm)
    expect(await sandbox.exec({ command })).toMatchObject({ stdout: 'other\n' })
  })

  test.each([0, 2])('gives each run the variables that its caller has then, with %d kept ready', async (warm) => {
    const policy = { env: { inherit: ['SHOWN'] } }
    await using sandbox = await openSandbox({ cwd: await temporaryDirectory({ mode: 0o755 }), policy, warm })
    const command = ['sh', '-c', 'echo "$SHOWN."']
    const shown = async (SHOWN: string | undefined) =>
      (await sandbox.exec({ command, env: { ...process.env, ...(SHOWN !== undefined && { SHOWN }) } })).stdout
    await sandbox.exec({ command }) // The plan is kept from now on.
    await whenReady(sandbox, warm)
    for (const value of ['one', 'one', 'two', undefined, 'one']) expect(await shown(value)).toBe(`${value ?? ''}.\n`)
  })

  test.each([0, 2])('does not run in a directory that replaced its own, with %d kept ready', async (warm) => {
    const parent = await temporaryDirectory({ mode: 0o755 })
    const cwd = join(parent, 'place')
    await mkdir(cwd)
    await writeFile(join(cwd, 'old'), '')
    await using sandbox = await openSandbox({ cwd, warm })
    await whenReady(sandbox, warm)
    expect(await sandbox.exec({ command: ['ls'] })).toMatchObject({ stdout: 'old\n' })
    await rename(cwd, join(parent, 'moved'))
    await expect(sandbox.exec({ command: ['ls'] })).rejects.toMatchObject({ code: 'ZONE_INVALID' })
    await mkdir(cwd)
    await writeFile(join(cwd, 'new'), '')
    expect(await sandbox.exec({ command: ['ls'] })).toMatchObject({ stdout: 'new\n' })
  })

  test('has one process for all runs, and sandboxes ready again when it and theirs were killed', async () => {
    const cwd = await temporaryDirectory({ mode: 0o755 })
    await using sandbox = await openSandbox({ cwd, warm: 1 })
    await using other = await openSandbox({ cwd, warm: 1 })
    await Promise.all([whenReady(sandbox), whenReady(other)])
    const resident = childrenOf(process.pid).filter((pid) => commOf(pid) === 'launch')
    expect(resident).toHaveLength(1)
    for (const pid of [...resident, ...resident.flatMap(childrenOf)]) process.kill(pid, 'SIGKILL')
    await until(async () => (sandbox.ready() === 0 ? true : undefined), 'the end of what was ready')
    await whenReady(sandbox)
    expect(await sandbox.exec({ command: ['echo', 'warm'] })).toMatchObject({ stdout: 'warm\n' })
    expect(sandbox.served()).toEqual({ warm: 1, cold: 0 })
  })

  // Nothing but the promise of `close` is waited for there: node ends with 13 where nothing keeps it running.
  test.each(['0', '1', '20'])('closes in a program that ends, %s ms after it was opened', async (ms) => {
    const library = join(checkoutFor(currentUser()), 'dist/index.js')
    const program = `import { openSandbox } from ${JSON.stringify(library)}
      const sandbox = await openSandbox({ warm: 2 })
      await new Promise((resolve) => setTimeout(resolve, ${ms}))
      await sandbox.close()
      console.log('closed', sandbox.ready())`
    const cwd = await temporaryDirectory({ mode: 0o755 })
    const options = { cwd, reject: false } as const
    const ended = await execa(process.execPath, ['--input-type=module', '-e', program], options)
    expect([ended.exitCode, ended.stdout, ended.stderr]).toEqual([0, 'closed 0', ''])
  })

  test('has removed what was ready when it is closed', async () => {
    const sandbox = await openSandbox({ cwd: await temporaryDirectory({ mode: 0o755 }), warm: 2 })
    await whenReady(sandbox, 2)
    const ours = new Set(descendantsOf(process.pid))
    const recorded = () => recordedPids().filter((pid) => ours.has(pid))
    expect(recorded()).toHaveLength(2)
    await sandbox.close()
    expect(recorded()).toEqual([])
  })

  test('keeps nothing open of plans for other environments', async () => {
    await using sandbox = await openSandbox({ warm: 0 })
    const runs = 6
    const before = openDescriptors()
    for (let n = 0; n < runs; n++) {
      const env = { ...process.env, PATH: `/usr/bin:/bin:/usr/no-${n}` }
      expect(await sandbox.exec({ command: ['true'], env })).toMatchObject({ exitCode: 0 })
    }
    expect(sandbox.served()).toEqual({ warm: 0, cold: runs })
    await until(async () => (openDescriptors() < before + runs ? true : undefined), 'as few descriptors as before')
  })
})

/** A wall of each kind; all rows: library.deep.system.test.ts. */
const STRONGEST: readonly string[] = [
  'files.host-absent',
  'files.read-only-zone',
  'network.only-loopback',
  'syscalls.refused',
  'processes.environment',
  'processes.no-privileges',
  'results.no-forging',
]

describeWith(['unshare', 'userns'], 'the contract in a warm sandbox', () => {
  for (const row of CONTRACT.filter(({ id }) => STRONGEST.includes(id)))
    test(row.sentence, async () => {
      const { landlockAbi } = await observeForDoctor(process.env)
      const verdict = await tryRow(row, { engine: 'unshare', landlockAbi, runner: warmRunner })
      expect(verdict, row.id).toMatchObject({ kind: expectedKind(row, landlockAbi) })
    })
})
