/**
 * Directories that an earlier run has closed to their own user (chmod) hide nothing from the guard: what lies in them is covered, what is
 * made in them is found, and what cannot be looked at refuses the run.
 */
import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import type { Result } from '../../src/report/result.ts'
import { runHere } from '../real/in-process.ts'
import { runCli } from '../support/cli.ts'
import { newDirectory, temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { callers } from '../support/users.ts'
import { WITH_AND_WITHOUT_NAMESPACES } from './chain.ts'

const CONFIG = '[core]\n\trepositoryformatversion = 0\n'

function makeRepository(directory: string): void {
  for (const name of ['objects', 'refs', 'hooks', 'info']) mkdirSync(join(directory, name), { recursive: true })
  writeFileSync(join(directory, 'HEAD'), 'ref: refs/heads/main\n')
  writeFileSync(join(directory, 'config'), CONFIG)
}

interface Attack {
  readonly zone: string
  readonly script: string
  readonly words: readonly string[]
}

const run = ({ zone, script, words }: Attack): Promise<Result> =>
  runHere(['--timeout', '60s', ...words, '--rw', '.', '--', 'sh', '-c', script], { cwd: zone })

/** Writes to each path that can be written, after everything on the way was opened again. */
const plant = (paths: readonly string[], closed: readonly string[]): string =>
  [
    `chmod 755 ${closed.join(' ')}`,
    `for path in ${paths.join(' ')}; do mkdir -p "$(dirname $path)" && echo evil >>$path; done`,
    `chmod 000 ${[...closed].reverse().join(' ')}`,
  ].join('; ')

const evilAt = (zone: string, paths: readonly string[]): readonly string[] =>
  paths.filter((path) => existsSync(join(zone, path)) && readFileSync(join(zone, path), 'utf8').includes('evil'))

const opened: string[] = []
/** Closed directories cannot be removed with the test's directory. */
function open(zone: string, paths: readonly string[]): void {
  for (const path of paths) chmodSync(join(zone, path), 0o755)
}
afterEach(() => {
  for (const path of opened.splice(0)) if (existsSync(path)) chmodSync(path, 0o755)
})

const NEW = ['.cargo/config.toml', '.github/workflows/x.yml', '.config/mise/config.toml', '.git/info/attributes']
const EXISTING = ['.git/config', '.git/hooks/pre-commit']
const CLOSED = ['.git', '.git/info', '.cargo', '.github', '.config']

async function makeZone(mode: number): Promise<string> {
  const zone = await temporaryDirectory({ mode: 0o755 })
  makeRepository(join(zone, '.git'))
  writeFileSync(join(zone, '.git/hooks/pre-commit'), 'host\n')
  for (const name of ['.cargo', '.github', '.config']) mkdirSync(join(zone, name))
  for (const name of [...CLOSED].reverse()) {
    chmodSync(join(zone, name), mode)
    opened.unshift(join(zone, name))
  }
  return zone
}

describeWith('userns', 'directories closed by an earlier run', () => {
  test('control: a command may close them, and without the protection it writes in them', async () => {
    const zone = await makeZone(0o755)
    const first = await run({ zone, words: [], script: `chmod 000 ${[...CLOSED].reverse().join(' ')}` })
    expect([first.reason, first.exitCode]).toEqual(['exit', 0])
    expect(statSync(join(zone, '.git')).mode & 0o777).toBe(0)
    const second = await run({ zone, words: ['--protect-not', '*'], script: plant([...EXISTING, ...NEW], CLOSED) })
    expect([second.reason, second.exitCode]).toEqual(['exit', 0])
    open(zone, CLOSED)
    expect(evilAt(zone, [...EXISTING, ...NEW])).toEqual([...EXISTING, ...NEW])
  })

  describe.each(WITH_AND_WITHOUT_NAMESPACES)('$engine', ({ engine, words }) => {
    test.each([0o000, 0o311])('of mode %o hide no protected name', async (mode) => {
      const zone = await makeZone(mode)
      const result = await run({ zone, words, script: plant([...NEW, ...EXISTING], CLOSED) })
      // Without mounts a closed directory that holds covers refuses the run, by its path.
      const isRefused = engine === 'none'
      expect(result.reason).toBe(isRefused ? 'setup' : 'protected')
      if (isRefused) expect(result.message).toMatch(/\.git: EACCES/)
      open(zone, CLOSED)
      expect(evilAt(zone, [...EXISTING, ...NEW])).toEqual([])
      expect(readFileSync(join(zone, '.git/config'), 'utf8')).toBe(CONFIG)
    })

    test('of any number hide neither a new repository nor an old one', async () => {
      const zone = await temporaryDirectory({ mode: 0o755 })
      const decoys = 'seq -f d%g 200 | xargs mkdir -m 311'
      const hidden = `${decoys}; mkdir -p e/f/g/app r/objects r/refs; echo x >r/HEAD; mv r e/f/g/app/.git; chmod 311 e/f/g e/f e`
      const made = await run({ zone, words, script: hidden })
      expect(made.reason).toBe('protected')
      open(zone, ['e', 'e/f', 'e/f/g'])
      expect(readdirSync(join(zone, 'e/f/g/app')).filter((name) => !name.includes('.set-aside.'))).toEqual([])
      expect(made.message).toContain('set aside as')

      makeRepository(join(zone, 'libs/core/app/.git'))
      chmodSync(join(zone, 'libs/core'), 0o311)
      opened.push(join(zone, 'libs/core'))
      await run({ zone, words, script: 'chmod 755 libs/core; echo evil >>libs/core/app/.git/config' })
      open(zone, ['libs/core'])
      expect(evilAt(zone, ['libs/core/app/.git/config'])).toEqual([])
      expect(statSync(join(zone, 'd7')).mode & 0o777).toBe(0o311)
    })
  })

  test('hide nothing where the zone itself is closed', async () => {
    const zone = await temporaryDirectory({ mode: 0o755 })
    makeRepository(join(zone, '.git'))
    chmodSync(zone, 0)
    opened.push(zone)
    const script =
      'chmod 755 /p; echo evil >>/p/.git/config; mkdir /p/.vscode; echo evil >/p/.vscode/tasks.json; chmod 0 /p'
    const result = await runHere(['--no-workspace', '--rw', `${zone}:/p`, '--', 'sh', '-c', script], { cwd: '/' })
    chmodSync(zone, 0o755)
    expect(result.reason).toBe('protected')
    expect(readFileSync(join(zone, '.git/config'), 'utf8')).toBe(CONFIG)
    expect(existsSync(join(zone, '.vscode'))).toBe(false)
    // The user's own repository is not set aside for it.
    expect(readdirSync(zone)).toContain('.git')
  })

  test('too deep to be looked at are named after the run, and what is in them is not called removed', async () => {
    const zone = await temporaryDirectory({ mode: 0o755 })
    // The shell itself does not go so deep.
    const script = `perl -e 'for (1..20) { mkdir "0" x 240; chdir "0" x 240 } mkdir ".git"'`
    const result = await run({ zone, words: [], script })
    // A path of this length is too long for the test's own clean-up.
    execFileSync('rm', ['-rf', join(zone, '0'.repeat(240))])
    expect(result.reason).toBe('protected')
    expect(result.message).toContain('cannot be looked at after the run')
    expect(result.message).not.toContain('removed')
  })

  // By the command line: the second run is the client's alone, without node.
  test.each(callers())('hide nothing when %s calls twice', async (as) => {
    const { path: zone, remove } = await newDirectory({ owner: as })
    const exec = (script: string) => runCli(['--rw', '.', '--', 'sh', '-c', script], { as, cwd: zone })
    expect((await exec('mkdir -m 0 .cargo .github; mkdir -p a/b; chmod 311 a')).status).toBe(0)
    const attack =
      'chmod 755 .cargo .github; echo evil >.cargo/config.toml; mkdir a/b/.git .github/workflows; chmod 0 a/b a'
    for (let time = 0; time < 2; time++) {
      expect((await exec(attack)).status).toBe(126)
      open(zone, ['.cargo', '.github', 'a', 'a/b'])
      const made = ['.cargo/config.toml', '.github/workflows', 'a/b/.git'].filter((name) =>
        existsSync(join(zone, name)),
      )
      expect(made).toEqual([])
    }
    await remove()
  })

  test('are left as they were by a run that finds nothing', async () => {
    const zone = await temporaryDirectory({ mode: 0o755 })
    mkdirSync(join(zone, 'private/inner'), { recursive: true })
    appendFileSync(join(zone, 'private/inner/file'), 'x')
    for (const name of ['private/inner', 'private']) chmodSync(join(zone, name), 0)
    opened.push(join(zone, 'private'), join(zone, 'private/inner'))
    const result = await run({ zone, words: [], script: 'true' })
    expect([result.reason, result.exitCode]).toEqual(['exit', 0])
    expect(statSync(join(zone, 'private')).mode & 0o777).toBe(0)
  })
})
