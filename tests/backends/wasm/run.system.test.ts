/** A real WASI command, compiled here, in a real node. */
import { mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Outcome } from '../../../src/backends/outcome.ts'
import { wasmInputs } from '../../../src/backends/wasm/inputs.ts'
import { superviseWasm } from '../../../src/backends/wasm/run.ts'
import type { Plan } from '../../../src/plan/plan.ts'
import { newDirectory } from '../../support/directory.ts'
import { compileGuest } from '../../support/driver.ts'
import { describeWith } from '../../support/needs.ts'
import { planFor, plannedZone, runInputs, text } from '../plans.ts'

describeWith('wasi', 'a WASI command', () => {
  const state: { root: string; remove: () => Promise<void> } = { root: '', remove: async () => undefined }
  beforeAll(async () => {
    const { path, remove } = await newDirectory()
    Object.assign(state, { root: path, remove })
    for (const name of ['ro', 'rw', 'rw/.git', 'rw/.git/hooks', 'outside']) await mkdir(join(path, name))
    await writeFile(join(path, 'ro/file'), 'original')
    await writeFile(join(path, 'outside/secret'), 'secret')
    for (const name of ['kept', 'free']) await writeFile(join(path, 'rw', name), '')
    await symlink('../outside/secret', join(path, 'ro/leak'))
    await symlink('.git/hooks', join(path, 'rw/by-link'))
    await compileGuest(join(path, 'ro/guest.wasm'))
  })
  afterAll(() => state.remove())

  async function run(command: readonly string[], changes: Partial<Plan> = {}): Promise<Outcome> {
    const zones = [
      plannedZone({ source: join(state.root, 'ro'), target: '/ro' }),
      plannedZone({
        source: join(state.root, 'rw'),
        target: '/rw',
        mode: 'rw',
        protect: ['.git/hooks', '.git/config', 'kept'],
      }),
    ]
    const plan = planFor('wasm', { zones, workdir: '/rw', limits: { timeoutMs: 20_000 }, ...changes })
    const commandEnv = { WORD: 'a\n"b"', NODE_OPTIONS: '--require=/nonexistent' }
    const inputs = runInputs({
      wasm: wasmInputs({ env: process.env, cwd: state.root }),
      command: ['/ro/guest.wasm', ...command],
      commandEnv,
    })
    return superviseWasm({ plan, run: inputs, stdio: { mode: 'capture', stdin: 'ignore', outputCap: 10_000 } })
  }

  test('gets its arguments and variables unchanged, and node none of them', async () => {
    expect(text((await run(['', '--bind', 'a\nb'])).stdout)).toBe('[][--bind][a\nb]')
    expect(text((await run(['env', 'WORD'])).stdout)).toBe('a\n"b"\n')
  })

  test('is refused memory at the limit', async () => {
    const outcome = await run(['eat'], { limits: { memory: { max: 16 << 20, by: 'wasm' } } })
    expect(outcome).toMatchObject({ exitCode: 9 })
    expect(text(outcome.stdout)).toMatch(/^refused after 1[0-5]$/m)
  })

  test('reads its zones, also by a relative path', async () => {
    expect(text((await run(['read', '/ro/file'])).stdout)).toBe('original')
    expect(await run(['write', 'relative'])).toMatchObject({ exitCode: 0 })
    expect(await readFile(join(state.root, 'rw/relative'), 'utf8')).toBe('written')
  })

  test.each([
    ['a path above', ['read', '/ro/../outside/secret']],
    ['a link out', ['read', '/ro/leak']],
    ['a host path', ['read', '/etc/passwd']],
    ['/proc', ['read', '/proc/self/environ']],
  ])('reads nothing by %s', async (_what, command) => {
    const outcome = await run(command)
    expect(outcome.exitCode).toBe(1)
    expect(text(outcome.stdout)).not.toContain('secret')
  })

  describe('changes nothing', () => {
    test.each([
      ['by writing', ['write', '/ro/file']],
      ['by appending', ['append', '/ro/file']],
      ['by making a file', ['write', '/ro/new']],
      ['by making a directory', ['mkdir', '/ro/new']],
      ['by removing', ['unlink', '/ro/file']],
      ['by renaming inside', ['rename', '/ro/file', '/ro/other']],
      ['by renaming out', ['rename', '/ro/file', '/rw/other']],
      ['by renaming in', ['rename', '/rw/free', '/ro/other']],
      ['by linking out', ['link', '/ro/file', '/rw/other']],
      ['by a symbolic link', ['symlink', 'file', '/ro/new']],
    ])('in a read-only zone %s', async (_how, command) => {
      expect((await run(command)).exitCode).toBe(1)
      expect((await readdir(join(state.root, 'ro'))).sort()).toEqual(['file', 'guest.wasm', 'leak'])
      expect(await readFile(join(state.root, 'ro/file'), 'utf8')).toBe('original')
    })

    test.each([
      ['by writing there', ['write', '/rw/.git/hooks/pre-commit']],
      ['by a path that is not there yet', ['write', '/rw/.git/config']],
      ['by a link that leads there', ['write', '/rw/by-link/pre-commit']],
      ['by moving its parent away', ['rename', '/rw/.git', '/rw/other']],
      ['by removing it', ['rmdir', '/rw/.git/hooks']],
    ])('at a protected path %s', async (_how, command) => {
      expect((await run(command)).exitCode).toBe(1)
      expect(await readdir(join(state.root, 'rw/.git'))).toEqual(['hooks'])
      expect(await readdir(join(state.root, 'rw/.git/hooks'))).toEqual([])
    })
  })

  test('sets no times of a protected file by a descriptor that only reads it', async () => {
    const secondsOf = async (name: string) => Math.floor((await stat(join(state.root, 'rw', name))).mtimeMs / 1000)
    const before = await secondsOf('kept')
    expect((await run(['times', '/rw/kept'])).exitCode).toBe(1)
    expect(await secondsOf('kept')).toBe(before)
    // The control: of any other file it does.
    expect((await run(['times', '/rw/free'])).exitCode).toBe(0)
    expect(await secondsOf('free')).toBe(1)
  })

  test('does all of that where the zone is rw and nothing is protected', async () => {
    const zones = [
      plannedZone({ source: join(state.root, 'ro'), target: '/ro' }),
      plannedZone({ source: join(state.root, 'outside'), target: '/free', mode: 'rw' }),
    ]
    const steps = `write /free/a, append /free/a, rename /free/a /free/b, link /free/b /free/c, symlink b /free/d, mkdir /free/.git,
      write /free/.git/config, unlink /free/b`
    for (const step of steps.split(/,\s+/)) expect(await run(step.split(' '), { zones })).toMatchObject({ exitCode: 0 })
    expect((await readdir(join(state.root, 'outside'))).sort()).toEqual(['.git', 'c', 'd', 'secret'])
  })
})
