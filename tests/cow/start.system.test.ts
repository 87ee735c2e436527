/** Starts of copy-on-write runs: by the client alone, and in sandboxes that were kept ready. Each has its own layer from its own start. */
import { existsSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { chmod, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { openSandbox } from '../../src/pool/sandbox.ts'
import type { Result } from '../../src/report/result.ts'
import { startPool, until } from '../pool/pool.ts'
import { runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { testWith } from '../support/needs.ts'
import { currentUser } from '../support/users.ts'
import { makePlace, type Place } from './place.ts'

const idsIn = (layers: string): readonly string[] => (existsSync(layers) ? readdirSync(layers) : [])

/** The programs that a call has started. */
async function programsOf(place: Place, ...words: readonly string[]): Promise<string> {
  const trace = join(await temporaryDirectory({ mode: 0o777 }), 'trace')
  await place.cliThrough(['strace', '-f', '-qq', '-e', 'trace=execve', '-o', trace], ...words)
  return readFileSync(trace, 'utf8')
}

const user = currentUser()

/** Node learns of the end of a run before the layer is removed. */
const onlyThese = (place: Place, ids: readonly string[]) => expect.poll(() => idsIn(place.layers)).toEqual(ids)

describe(`as ${user}`, () => {
  describe('a run of a known plan', () => {
    test('is started without node, and ends without it where nothing was changed; the layer is gone', async () => {
      const place = await makePlace(user)
      writeFileSync(join(place.project, 'file'), 'text\n')
      const words = ['exec', '--cow', '.', '--', 'cat', 'file']
      const before = idsIn(place.layers)
      expect((await place.cli(...words)).status).toBe(0)
      const programs = await programsOf(place, ...words)
      expect(programs).toMatch(/"cat"/)
      expect(programs).not.toMatch(/node/)
      await onlyThese(place, before)
      // Control: node tells of what was changed.
      expect(await programsOf(place, 'exec', '--cow', '.', '--', 'touch', 'new')).toMatch(/node/)
    })

    test('that made something for a moment only ends without node, too; the layer is gone', async () => {
      const place = await makePlace(user)
      mkdirSync(join(place.project, 'd/deep'), { recursive: true })
      const words = (script: string) => ['exec', '--cow', '.', '--', 'sh', '-c', script]
      const moment = 'mkdir d/deep/new; touch d/deep/new/x; rm -r d/deep/new'
      const before = idsIn(place.layers)
      const left = () => idsIn(place.layers).filter((id) => !before.includes(id))
      expect((await place.cli(...words(moment))).status).toBe(0)
      expect(await programsOf(place, ...words(moment))).not.toMatch(/node/)
      await onlyThese(place, before)
      // Controls: directories alone can be a change, too.
      for (const script of ['mkdir d/deep/new', 'chmod 700 d/deep', 'rm -r d; mkdir d'])
        expect((await place.run(script)).changes).not.toEqual([])
      expect(left()).toHaveLength(3)
    })

    test('reports its changes as a run that node has started does, with and without JSON', async () => {
      const place = await makePlace(user)
      const runs = [await place.run('echo x > x'), await place.run('echo x > x')]
      expect(runs.map(({ changes }) => changes)).toEqual([runs[0]?.changes, runs[0]?.changes])
      expect(runs[0]?.changes).toMatchObject([{ path: 'x', kind: 'added' }])
      const words = ['exec', '--cow', '.', '--', 'sh', '-c', 'echo x > x']
      const texts = [await place.cli(...words), await place.cli(...words)].map(({ stderr }) => stderr.toString())
      expect(texts).toEqual([
        expect.stringMatching(/^llm-do: 1 added: llm-do diff /),
        expect.stringMatching(/^llm-do: 1 added: /),
      ])
    })
  })

  describe('a sandbox that is kept ready', () => {
    test('serves a plan with a copy-on-write directory, from a layer that begins with the command', async () => {
      const cwd = await temporaryDirectory({ owner: user, mode: 0o755 })
      writeFileSync(join(cwd, 'file'), 'one\n')
      const pool = await startPool({ as: user, cwd, options: ['--cow', '.'] })
      const layers =
        user === 'root' ? '/var/lib/llm-do/cow' : join(pool.call.env?.['HOME'] ?? '', '.local/state/llm-do/cow')
      await pool.whenReady()
      // After the sandbox was built and before its command: no conflict.
      writeFileSync(join(cwd, 'file'), 'two\n')
      await sleep(20)
      const cli = (...words: readonly string[]) => runCli(words, { ...pool.call, program: 'llm-do' })
      const { stdout, stderr, isWarm } = await pool.runWarm(['sh', '-c', 'cat file; echo three >> file'])
      expect([isWarm, stdout.toString()]).toEqual([true, 'two\n'])
      const short = /^llm-do: 1 changed: llm-do diff (\w+)\n$/.exec(stderr.toString())?.[1] ?? ''
      const { id, changes } = JSON.parse((await cli('changes', '--json', short)).stdout.toString()) as Waiting & Result
      expect(changes).toEqual([expect.objectContaining({ path: 'file', kind: 'modified' })])
      expect(changes?.[0]?.conflict).toBeUndefined()
      const listed = JSON.parse((await cli('ps', '--cow', '--json')).stdout.toString()) as { id: string }[]
      const ours = listed.filter((one) => one.id === id)
      expect(ours).toHaveLength(1)
      expect((await cli('apply', id)).status).toBe(0)
      expect(readFileSync(join(cwd, 'file'), 'utf8')).toBe('two\nthree\n')
      await cli('discard', id)
      // A sandbox that was kept ready and not used leaves nothing.
      await pool.stop()
      await until(async () => (unused(layers).length === 0 ? true : undefined), 'the end of the layers')
    })

    test('does not take a command after its directory got another mode', async () => {
      const cwd = await temporaryDirectory({ owner: user, mode: 0o755 })
      const pool = await startPool({ as: user, cwd, options: ['--cow', '.'] })
      await pool.whenReady()
      await chmod(cwd, 0o700)
      const { status, stdout, stderr } = await pool.run(['stat', '-c', '%a', '.'])
      // A mode that is another one than the layer's would be a change.
      expect([status, stdout.toString(), stderr.toString()]).toEqual([0, '700\n', ''])
      await chmod(cwd, 0o755)
      await pool.whenReady()
      // Control: one that was made since takes it.
      const again = await pool.runWarm(['stat', '-c', '%a', '.'])
      expect([again.isWarm, again.stdout.toString(), again.stderr.toString()]).toEqual([true, '755\n', ''])
    })
  })
})

interface Waiting {
  readonly id: string
}

/** Without a record: of commands that have not come. */
const unused = (layers: string): readonly string[] =>
  idsIn(layers).filter((id) => !existsSync(join(layers, id, 'record')))

testWith('root', 'an open sandbox of the library gives the changes of each run', async () => {
  const cwd = await temporaryDirectory({ mode: 0o755 })
  await using sandbox = await openSandbox({ cwd, policy: { workspace: 'cow' }, warm: 1 })
  await until(async () => (sandbox.ready() >= 1 ? true : undefined), 'a sandbox ready')
  const { cow } = await sandbox.exec({ command: ['sh', '-c', 'echo x > x'] })
  expect(sandbox.served()).toEqual({ warm: 1, cold: 0 })
  expect(await cow?.changes()).toMatchObject([{ path: 'x', kind: 'added' }])
  expect(await cow?.apply()).toMatchObject({ applied: 1 })
  expect(readFileSync(join(cwd, 'x'), 'utf8')).toBe('x\n')
  await cow?.discard()
  const { cow: none } = await sandbox.exec({ command: ['true'] })
  expect(none).toBeUndefined()
})

testWith('root', 'what a killed runner made for a command that never came is removed by prune', async () => {
  const place = await makePlace('root')
  const left = join(place.layers, 'neverused0')
  await mkdir(join(left, 'zone.0/up'), { recursive: true, mode: 0o700 })
  const early = new Date(Date.now() - 120_000)
  utimesSync(left, early, early)
  expect((await place.cli('prune')).status).toBe(0)
  expect(existsSync(left)).toBe(false)
  // Control: what was made just now may be about to be locked.
  await mkdir(left, { mode: 0o700 })
  expect((await place.cli('prune')).status).toBe(0)
  expect(existsSync(left)).toBe(true)
  expect((await place.cli('discard', '--force', 'neverused0')).status).toBe(0)
})
