/** Real programs in a sandbox: vitest, git, a toolchain in a home directory. tests/recipes.ts and tests/learn have more. */
import { constants } from 'node:fs'
import { copyFile, mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { plan } from '../../src/index.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { checkoutFor, currentUser, PLAIN_ID } from '../support/users.ts'
import { directoryWith, fill } from './directory.ts'
import { textHere } from './in-process.ts'

/** A repository with one commit and one change, made by git itself. */
async function repository(): Promise<string> {
  const directory = await directoryWith({ 'poem.txt': 'one\n' })
  const git = (...words: readonly string[]) => execa('git', ['-C', directory, ...words], { env: { HOME: directory } })
  await git('init', '--quiet')
  await git('add', '.')
  await git('-c', 'user.name=Ann', '-c', 'user.email=ann@example.com', 'commit', '--quiet', '-m', 'Begin a poem')
  await fill(directory, { 'poem.txt': 'one\ntwo\n' })
  return directory
}

describeWith(['userns'], 'real programs', () => {
  test('vitest runs files side by side under the limits of the task profile', async () => {
    const modules = join(checkoutFor(currentUser()), 'node_modules')
    const text = "import { expect, test } from 'vitest'\ntest('sum', () => expect(1 + 1).toBe(2))\n"
    const cwd = await directoryWith(Object.fromEntries(['a', 'b', 'c', 'd'].map((name) => [`${name}.test.js`, text])))
    await symlink(modules, join(cwd, 'node_modules'))
    const command = ['node_modules/.bin/vitest', 'run', '--no-color', '--maxWorkers', '4']
    const { status, out, err } = await textHere(['--profile', 'task', '--ro', modules, '--', ...command], { cwd })
    expect({ status, out, err }).toEqual({ status: 0, out: expect.stringMatching(/Tests {2}4 passed/), err: '' })
  })

  testWith(
    ['root', 'git'],
    "root runs git in another user's repository: inside, it is the sandbox user's",
    async () => {
      const cwd = await repository()
      await execa('chown', ['-R', `${PLAIN_ID}:${PLAIN_ID}`, cwd])
      const who = ['-c', 'user.name=Bob', '-c', 'user.email=bob@example.com']
      const committed = await textHere(['--rw', '.', '--', 'git', ...who, 'commit', '-qam', 'Add a line'], { cwd })
      expect(committed).toEqual({ status: 0, out: '', err: '' })
      const { stdout } = await execa('find', [cwd, '!', '-uid', `${PLAIN_ID}`])
      expect(stdout).toBe('')
    },
  )
})

describeWith(['userns'], 'a toolchain in a home directory', () => {
  /** The files of nvm: a prefix with node and with a tool that npm installed. */
  async function nvmHome(): Promise<{ readonly home: string; readonly bin: string }> {
    const home = await temporaryDirectory()
    const prefix = join(home, '.nvm/versions/node', process.version)
    const bin = join(prefix, 'bin')
    await mkdir(bin, { recursive: true })
    await copyFile(process.execPath, join(bin, 'node'), constants.COPYFILE_FICLONE)
    await fill(prefix, {
      'lib/node_modules/greet/cli.js': '#!/usr/bin/env node\nconsole.log("hello from " + process.execPath)\n',
    })
    await symlink('../lib/node_modules/greet/cli.js', join(bin, 'greet'))
    await fill(home, { '.npmrc': '//registry.example.com/:_authToken=secret\n', '.ssh/id_ed25519': 'secret\n' })
    return { home, bin }
  }

  test('is mounted for the tool, and the rest of that home is not', async () => {
    const { home, bin } = await nvmHome()
    const cwd = await directoryWith()
    const env = { HOME: home, PATH: `${bin}:/usr/bin:/bin` }
    const greeting = { status: 0, out: `hello from ${bin}/node\n`, err: '' }
    expect(await textHere(['--', 'greet'], { cwd, env })).toEqual(greeting)
    const script = `cat '${home}/.npmrc' '${home}/.ssh/id_ed25519'; ls -A '${home}'`
    expect(await textHere(['-c', script], { cwd, env })).toMatchObject({ out: '.nvm\n', status: 0 })
    const { zones } = await plan({ command: ['greet'], cwd, env })
    expect(zones.find(({ source }) => source.startsWith(home))).toMatchObject({
      source: join(bin, '..'),
      mode: 'ro',
      from: expect.stringContaining('toolchain'),
    })
  })
})
