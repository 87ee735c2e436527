/** While a pool is up, its watcher says what has changed in a large zone. A run is protected as one that looks for itself. */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { commOf, descendantsOf } from '../support/processes.ts'
import { checkoutFor, currentUser } from '../support/users.ts'
import { startPool, type TestPool, until } from './pool.ts'

/** So many that a run asks a watcher. */
const WIDTH = 30

async function largeZone(): Promise<string> {
  const zone = await temporaryDirectory({ mode: 0o755 })
  for (let i = 0; i < WIDTH; i += 1)
    for (let j = 0; j < WIDTH; j += 1) mkdirSync(join(zone, `d${i}/e${j}`), { recursive: true })
  writeFileSync(join(zone, 'd1/e1/program'), 'one\n')
  return zone
}

const watchersOf = (pool: TestPool) => descendantsOf(pool.keeper.pid).filter((pid) => commOf(pid) === 'watcher')

/** A run that does not use the pool, and the number of files whose times it has asked for. */
async function watched(pool: TestPool, script: string) {
  const log = join(await temporaryDirectory(), 'log')
  const through = ['strace', '-f', '-qq', '-e', 'trace=statx', '-o', log]
  const words = [...pool.options, '--pool', 'off', '--', 'sh', '-c', script]
  const { status, stderr } = await runCli(words, { ...pool.call, program: 'llm-do-exec', through })
  return { status, stderr: String(stderr), looks: readFileSync(log, 'latin1').split('\n').length }
}

/** Its second run misses a watcher, which the keeper starts as soon as it has anything to do. */
async function watchedPool(): Promise<TestPool> {
  const pool = await startPool({ cwd: await largeZone(), options: ['--rw', '.'], size: 1 })
  const isAnswered = async () => {
    await pool.run(['true'])
    return (await watched(pool, 'true')).looks < WIDTH * WIDTH ? true : undefined
  }
  await until(isAnswered, 'an answer')
  return pool
}

describeWith(['userns', 'strace'], 'a large zone of a pool', () => {
  test('is watched, and what the host has made deep in it cannot be written', async () => {
    const pool = await watchedPool()
    expect(watchersOf(pool)).toHaveLength(1)
    const hooks = join(pool.cwd, 'd5/e5/.git/hooks')
    mkdirSync(hooks, { recursive: true })
    const { looks, status, stderr } = await watched(pool, 'echo evil >d5/e5/.git/hooks/pre-commit; echo fine >d5/e6/x')
    expect(looks).toBeLessThan(WIDTH * WIDTH)
    expect({ status, stderr }).toMatchObject({ status: 0, stderr: expect.stringContaining('Read-only file system') })
    expect([readdirSync(hooks), existsSync(join(pool.cwd, 'd5/e6/x'))]).toEqual([[], true])
  })

  test('has a repository that a command makes deep in it set aside', async () => {
    const pool = await watchedPool()
    const { looks, status } = await watched(pool, 'mkdir -p d6/e6/deep/.git/hooks')
    expect(looks).toBeLessThan(WIDTH * WIDTH)
    expect(status).toBe(126)
    expect(readdirSync(join(pool.cwd, 'd6/e6/deep')).join()).toMatch(/^\.git\.set-aside\./)
  })

  test('is given up with the pool, and leaves no socket', async () => {
    const pool = await watchedPool()
    const [watcher = 0] = watchersOf(pool)
    const socket = join(dirname(dirname(pool.directory)), 'trees/.watcher')
    expect(existsSync(socket)).toBe(true)
    await pool.stop()
    await until(
      async () => (existsSync(socket) || commOf(watcher) === 'watcher' ? undefined : true),
      'the end of the watcher',
    )
  })
})

describeWith(['userns'], 'a large zone of a program with the library', () => {
  test('is watched until its end, also where no other program of the user has run', async () => {
    const runtime = await temporaryDirectory()
    const socket = join(process.geteuid?.() === 0 ? '/run' : runtime, 'llm-do/trees/.watcher')
    const text = `
      import { existsSync } from 'node:fs'
      import { openSandbox } from ${JSON.stringify(join(checkoutFor(currentUser()), 'dist/index.js'))}
      const sandbox = await openSandbox({ policy: { zones: [{ hostPath: '.', mode: 'rw' }] }, warm: 0 })
      while (!existsSync(${JSON.stringify(socket)})) await sandbox.exec({ command: ['true'] })
      console.log('watched')
      await sandbox.close()`
    const { stdout } = await execa(process.execPath, ['--input-type=module', '-e', text], {
      cwd: await largeZone(),
      env: { XDG_RUNTIME_DIR: runtime },
    })
    expect(stdout).toBe('watched')
    await until(async () => (existsSync(socket) ? undefined : true), 'the end of the watcher')
  })
})

describeWith(['root', 'userns', 'strace'], 'a large zone of root', () => {
  test('has a file that has got a set-id bit covered', async () => {
    const pool = await watchedPool()
    const program = join(pool.cwd, 'd1/e1/program')
    expect((await watched(pool, 'echo two >d1/e1/program')).status).toBe(0)
    chmodSync(program, 0o4755)
    const { looks, stderr } = await watched(pool, 'echo three >d1/e1/program')
    expect(looks).toBeLessThan(WIDTH * WIDTH)
    expect(stderr).toContain('Read-only file system')
    expect(readFileSync(program, 'latin1')).toBe('two\n')
  })

  test('has a repository in a file system that was mounted in it covered', async () => {
    const pool = await watchedPool()
    const other = await temporaryDirectory({ mode: 0o755 })
    mkdirSync(join(other, '.git/hooks'), { recursive: true })
    await execa('mount', ['--bind', other, join(pool.cwd, 'd7/e7')])
    try {
      const { stderr } = await watched(pool, 'echo evil >d7/e7/.git/hooks/pre-commit')
      expect(stderr).toContain('Read-only file system')
      expect(readdirSync(join(other, '.git/hooks'))).toEqual([])
    } finally {
      await execa('umount', [join(pool.cwd, 'd7/e7')])
    }
  })
})
