/** git in a checkout that `git worktree add` has made, and what such a checkout must not open. */
import { execFileSync } from 'node:child_process'
import { chownSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { runHere, textHere } from './in-process.ts'

const git = (cwd: string, ...words: readonly string[]): string =>
  execFileSync('git', ['-C', cwd, '-c', 'user.name=Ann', '-c', 'user.email=ann@example.org', ...words], {
    encoding: 'utf8',
    stdio: 'pipe',
    env: { PATH: process.env.PATH, HOME: '/nonexistent' },
  })

/** A repository and a checkout of it next to it. */
async function worktree() {
  const base = await temporaryDirectory()
  const [main, checkout] = [join(base, 'main'), join(base, 'checkout')]
  mkdirSync(main)
  git(main, 'init', '--quiet')
  git(main, 'config', 'user.name', 'Ann')
  git(main, 'config', 'user.email', 'ann@example.org')
  writeFileSync(join(main, 'poem.txt'), 'one\n')
  git(main, 'add', '.')
  git(main, 'commit', '--quiet', '-m', 'Begin a poem')
  git(main, 'worktree', 'add', '--quiet', checkout)
  writeFileSync(join(checkout, 'poem.txt'), 'one\ntwo\n')
  return { base, common: join(main, '.git'), checkout }
}

const COMMIT = ['--', 'git', 'commit', '--quiet', '-am', 'Go on']

describeWith(['userns', 'git'], 'in a linked worktree', () => {
  test('status, log and diff work, and nothing of the repository can be changed', async () => {
    const { common, checkout } = await worktree()
    const script =
      'git status --short; git log --format=%s; git diff --unified=0 | tail -1; echo x >"$0/config"; echo x >"$0/new"'
    for (const options of [[], ['--rw', '.']]) {
      const { out, err } = await textHere([...options, '--', 'sh', '-c', script, common], { cwd: checkout })
      expect(out).toBe(' M poem.txt\nBegin a poem\n+two\n')
      expect(err.match(/Read-only file system/g)).toHaveLength(2)
    }
    expect(existsSync(join(common, 'new'))).toBe(false)
  })

  test('a commit names the option that it needs, and works with it', async () => {
    const { common, checkout } = await worktree()
    const { exitCode, denials } = await runHere(['--rw', '.', ...COMMIT], { cwd: checkout })
    expect([exitCode, denials.map(({ fix }) => fix)]).toEqual([128, [`--rw ${common}`]])
    expect(await textHere(['--rw', '.', '--rw', common, ...COMMIT], { cwd: checkout })).toMatchObject({ status: 0 })
    expect(git(checkout, 'log', '-1', '--format=%s')).toBe('Go on\n')
  })

  test('who brings an identity to commit with hears of that option before the run', async () => {
    const { common, checkout } = await worktree()
    const warningsOf = async (...options: readonly string[]) =>
      (await runHere(['--rw', '.', ...options, '--', 'true'], { cwd: checkout })).warnings
    const warning = `git cannot commit: ${common} is read-only; to allow it: --rw ${common}`
    expect(await warningsOf('--git-identity')).toContain(warning)
    expect([await warningsOf(), await warningsOf('--git-identity', '--rw', common)].flat()).not.toContain(warning)
  })

  test('that option opens nothing that git runs or is led by', async () => {
    const { common, checkout } = await worktree()
    const own = join(common, 'worktrees/checkout')
    const closed = [
      join(common, 'config'),
      join(common, 'hooks/post-commit'),
      join(own, 'gitdir'),
      join(own, 'commondir'),
    ]
    const before = closed.map((path) => (existsSync(path) ? readFileSync(path, 'utf8') : ''))
    const script = 'for path; do echo planted >"$path"; done'
    await textHere(['--rw', '.', '--rw', common, '--', 'sh', '-c', script, 'sh', ...closed], { cwd: checkout })
    expect(closed.map((path) => (existsSync(path) ? readFileSync(path, 'utf8') : ''))).toEqual(before)
  })

  test('a copy of it, which the repository does not know, shows nothing of the repository', async () => {
    const { base, common, checkout } = await worktree()
    const copy = join(base, 'copy')
    cpSync(checkout, copy, { recursive: true })
    const look = async (cwd: string) => (await textHere(['--', 'ls', common], { cwd })).out.includes('objects')
    expect([await look(copy), await look(checkout)]).toEqual([false, true])
  })

  test('the repository is found again when git has put its records right', async () => {
    const { base, checkout } = await worktree()
    const moved = join(base, 'moved')
    execFileSync('mv', [checkout, moved])
    const status = async () => (await textHere(['--', 'git', 'status', '--short'], { cwd: moved })).out
    expect(await status()).toBe('')
    git(moved, 'worktree', 'repair')
    expect(await status()).toBe(' M poem.txt\n')
  })
})

/** Profile agent has the key `repository`. */
describeWith(['userns', 'git'], 'with the repository around the directory', () => {
  const IDENTITY = ['-c', 'user.name=Ann', '-c', 'user.email=ann@example.org']
  const commit = ['--', 'git', ...IDENTITY, 'commit', '--quiet', '-am', 'Go on']

  test.each(['main', 'main/deep/er', 'checkout', 'checkout/deep/er'])('git commits in %s', async (place) => {
    const { base } = await worktree()
    const cwd = join(base, place)
    mkdirSync(cwd, { recursive: true })
    writeFileSync(join(base, place.split('/')[0] ?? '', 'poem.txt'), 'three\n')
    const { profile, without } = profiles(base)
    if (place !== 'main')
      expect(await textHere(['--profile', without, ...commit], { cwd })).toMatchObject({ status: 128 })
    expect(await textHere(['--profile', profile, ...commit], { cwd })).toMatchObject({ status: 0, err: '' })
    expect(git(cwd, 'log', '-1', '--format=%s')).toBe('Go on\n')
    expect((await textHere(['--profile', profile, '--', 'pwd'], { cwd })).out).toBe(`${cwd}\n`)
  })

  test('what git runs stays closed, above the directory and in the repository of a worktree', async () => {
    const { base, common } = await worktree()
    const { profile } = profiles(base)
    const script = 'echo planted >"$0"'
    for (const place of ['main/deep', 'checkout']) {
      mkdirSync(join(base, place), { recursive: true })
      for (const closed of [join(common, 'config'), join(common, 'hooks/post-commit')])
        await textHere(['--profile', profile, '--', 'sh', '-c', script, closed], { cwd: join(base, place) })
    }
    expect(readFileSync(join(common, 'config'), 'utf8')).not.toContain('planted')
    expect(existsSync(join(common, 'hooks/post-commit'))).toBe(false)
  })

  test('a caller who has named the directory is shown no more', async () => {
    const { base } = await worktree()
    const { profile } = profiles(base)
    const cwd = join(base, 'main/deep')
    mkdirSync(cwd)
    const look = async (...flags: readonly string[]) =>
      (await textHere(['--profile', profile, ...flags, '--', 'ls', '..'], { cwd })).out.includes('poem.txt')
    expect([await look(), await look('--rw', '.'), await look('--cow', '.'), await look('--no-workspace')]).toEqual([
      true,
      false,
      false,
      false,
    ])
  })

  test('a flag that asks for both is refused, a profile warns, and the flag that each names shows the repository', async () => {
    const { base } = await worktree()
    const cwd = join(base, 'main/deep')
    mkdirSync(cwd)
    const look = async (...flags: readonly string[]) => await textHere([...flags, '--', 'ls', '..'], { cwd })
    const whole = `--cow ${join(base, 'main')}`
    for (const flag of [['--cow', '.'], ['--no-workspace']]) {
      const refused = await look('--repository', ...flag)
      expect(refused).toMatchObject({
        status: 125,
        err: expect.stringContaining('error POLICY_INVALID: --repository: '),
      })
      expect(refused.err).toContain(`hint: ${flag.length > 1 ? whole : whole.replace('cow', 'ro')} in the place of`)
    }
    expect((await look('--profile', profiles(base).profile, '--cow', '.')).err).toContain(`to show it: ${whole}\n`)
    expect((await look(...whole.split(' '))).out).toContain('poem.txt')
    expect((await look('--repository', ...whole.split(' '))).out).toContain('poem.txt')
  })

  test('a repository around the home of the caller is not shown', async () => {
    const { base } = await worktree()
    const { profile } = profiles(base)
    const cwd = join(base, 'main/home/project')
    mkdirSync(cwd, { recursive: true })
    const { out } = await textHere(['--profile', profile, '--', 'ls', join(base, 'main')], {
      cwd,
      env: { HOME: join(base, 'main/home') },
    })
    expect(out).not.toContain('poem.txt')
  })

  testWith('root', 'a repository of another user is not shown', async () => {
    const { base, common } = await worktree()
    const { profile } = profiles(base)
    const cwd = join(base, 'main/deep')
    mkdirSync(cwd)
    chownSync(common, 12_345, 12_345)
    expect((await textHere(['--profile', profile, '--', 'ls', join(base, 'main')], { cwd })).out).not.toContain('poem')
  })
})

/** An agent's profile with the key, and without. */
function profiles(base: string) {
  const write = (name: string, line: string): string => {
    const path = join(base, name)
    writeFileSync(path, `sandbox:\n  extends: default\n  workspace: rw\n  samePath: true\n${line}`)
    return path
  }
  return { profile: write('with.yaml', '  repository: true\n'), without: write('without.yaml', '') }
}
