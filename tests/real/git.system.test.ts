/** git as people have it, under the profile `agent`: the commands that work, and the flag for each other one. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { programFor } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { currentUser } from '../support/users.ts'
import { textHere } from './in-process.ts'

const IDENTITY = '[user]\n\tname = Ann\n\temail = ann@example.org\n[protocol "file"]\n\tallow = always\n'

/** A repository `main` with one commit and a directory `sub`, of a person with an identity. */
async function site() {
  const [base, home] = [await temporaryDirectory(), await temporaryDirectory()]
  const env = { HOME: home, PATH: process.env.PATH ?? '', GIT_CONFIG_NOSYSTEM: '1' }
  await writeFile(join(home, '.gitconfig'), IDENTITY)
  const git = async (cwd: string, ...words: readonly string[]) =>
    (await execa('git', ['-C', join(base, cwd), ...words], { env, extendEnv: false })).stdout
  const script = 'git init -q main && cd main && mkdir sub && echo one >sub/poem && git add . && git commit -qm one'
  await execa('sh', ['-ec', script], { cwd: base, env })
  const run = async (cwd: string, ...argv: readonly string[]) => {
    const words = ['--profile', 'agent', '--home', 'none', ...argv]
    return await textHere(words, { cwd: join(base, cwd), env: { HOME: home } })
  }
  return { base, env, git, run }
}

const commit = ['--', 'sh', '-c', 'echo two >>poem && git commit -qam two']

describeWith(['userns', 'git'], 'git under the profile agent', () => {
  test('below the root of a repository works, and in a submodule names the flag that shows it, which works', async () => {
    const { base, git, run } = await site()
    await execa('git', ['clone', '-q', '--bare', join(base, 'main'), join(base, 'lib')])
    await git('main', 'submodule', 'add', '-q', join(base, 'lib'), 'mod')
    await git('main', 'commit', '-qm', 'mod')
    expect(await run('main/sub', ...commit)).toMatchObject({ status: 0, err: '' })
    expect(await git('main', 'log', '-1', '--format=%s')).toBe('two')
    const flag = ['--rw', join(base, 'main')]
    const words = ['--', 'sh', '-c', 'echo two >>sub/poem && git commit -qam two']
    const refused = await run('main/mod', ...words)
    expect(refused.err).toContain(`git finds no repository: ${flag[1]} is not shown; to show it: ${flag.join(' ')}`)
    expect(refused.status).not.toBe(0)
    expect(await run('main/mod', ...flag, ...words)).toMatchObject({ status: 0, err: '' })
    expect(await git('main/mod', 'log', '-1', '--format=%s')).toBe('two')
  })

  test('hooks of a partial commit see what is committed: inside, and as a run inside a hook of the host', async () => {
    const { base, git, run, env } = await site()
    const hook = join(base, 'main/.git/hooks/pre-commit')
    const change = 'echo a >a && echo b >b && git add a b'
    await writeFile(hook, '#!/bin/sh\ngit diff --cached --name-only >seen\n', { mode: 0o755 })
    const inside = await run('main', '--', 'sh', '-c', `${change} && git commit -qm a -- a && cat seen`)
    expect(inside).toMatchObject({ out: 'a\n', err: '' })
    const exec = `${programFor(currentUser())} --profile agent --home none -- git diff --cached --name-only >seen`
    await writeFile(hook, `#!/bin/sh\n${exec}\n`, { mode: 0o755 })
    await execa('sh', ['-ec', 'echo c >c && git add c && git commit -qm c -- c'], { cwd: join(base, 'main'), env })
    expect(await readFile(join(base, 'main/seen'), 'utf8')).toBe('c\n')
    expect(await git('main', 'status', '--short')).toMatch(/^A {2}b/)
  })
})
