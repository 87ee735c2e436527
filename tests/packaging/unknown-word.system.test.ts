/**
 * A word that is no verb, by the command as each package installs it. It once went to "the next llm-do on PATH", which in npm's layout was the
 * same command under another name, and that forwarded it again: a fork bomb. So each call has a limit of processes, which counts for no root.
 */
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { execa } from 'execa'
import { beforeAll, expect, test } from 'vitest'
import { newDirectory } from '../support/directory.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { installPackages, packFor } from '../support/npm-packages.ts'
import { checkoutFor, currentUser } from '../support/users.ts'
import { installed } from './installed.ts'

const CHECKOUT = checkoutFor(currentUser())
const MODULES = 'node_modules/llm-do-exec/bin/llm-do'

/** An id of this file alone: the limit counts all processes of a user. */
const ALONE = ['setpriv', '--reuid', '65471', '--regid', '65471', '--clear-groups', '--']
const LIMITED = ['timeout', '-s', 'KILL', '20', ...ALONE, 'prlimit', '--nproc=60', '--core=0']

let site: string
beforeAll(async () => {
  site = (await newDirectory({ mode: 0o755 })).path // removed with the directory of the test file
  for (const name of ['other', 'project/node_modules/.bin', 'prefix/bin', 'prefix/lib', 'link', 'wrapper'])
    await mkdir(join(site, name), { recursive: true })
  await writeFile(join(site, 'other/llm-do'), '#!/bin/sh\necho another program\n', { mode: 0o755 })
  const packages = await packFor(site)
  await installPackages(join(site, 'project/node_modules'), packages)
  await symlink(join(site, 'project', MODULES), join(site, 'project/node_modules/.bin/llm-do'))
  // As npm does it: the package of the machine inside of the one that needs it.
  await installPackages(join(site, 'prefix/lib/node_modules/llm-do-exec/node_modules'), packages)
  await execa('sh', ['-c', 'cp -a node_modules/llm-do-exec/. . && rm -r node_modules/llm-do-exec'], {
    cwd: join(site, 'prefix/lib/node_modules/llm-do-exec'),
  })
  await symlink(`../lib/${MODULES}`, join(site, 'prefix/bin/llm-do'))
  const plain = join(checkoutFor('plain'), 'bin/llm-do')
  await symlink(plain, join(site, 'link/llm-do'))
  await writeFile(join(site, 'wrapper/llm-do'), `#!/bin/sh\nexec '${plain}' "$@"\n`, { mode: 0o755 })
})

/** Both are said to be no verb; no program named `llm-do` is started for them, neither this one again nor another. */
async function expectRefused(program: string): Promise<void> {
  const env = { PATH: [join(site, 'other'), dirname(program), process.env['PATH']].join(':'), HOME: site }
  const [file = '', ...words] = [...LIMITED, program]
  const call = (word: string) => execa(file, [...words, word], { env, extendEnv: false, reject: false, cwd: site })
  expect(await call('--version'), 'the control').toMatchObject({ exitCode: 0 })
  const asked = [await call('ls'), await call('exce')]
  expect(asked.map(({ exitCode, stdout, stderr }) => [exitCode, stdout, stderr.split('\n')[0]])).toEqual([
    [125, '', 'llm-do: error USAGE: no command "ls". Did you mean "ps"?'],
    [125, '', 'llm-do: error USAGE: no command "exce". Did you mean "exec"?'],
  ])
}

describeWith('root', 'a word that is no verb starts nothing, by', () => {
  test.each([
    ['the checkout', () => join(checkoutFor('plain'), 'bin/llm-do')],
    ['a link to it', () => join(site, 'link/llm-do')],
    ['a script that starts it', () => join(site, 'wrapper/llm-do')],
    ['npm, in a project', () => join(site, 'project/node_modules/.bin/llm-do')],
    ['npm, for everybody', () => join(site, 'prefix/bin/llm-do')],
  ])('%s', (_, program) => expectRefused(program()))

  test('make install', async () => {
    await expectRefused(join(await installed(), 'bin/llm-do'))
  })

  testWith('dpkg-deb', 'the package of Debian', async () => {
    await execa('make', ['-C', CHECKOUT, 'deb', `DEB=${join(site, 'package.deb')}`, 'SOURCE_DATE_EPOCH=1000000000'])
    await execa('dpkg-deb', ['-x', join(site, 'package.deb'), join(site, 'root')])
    await expectRefused(join(site, 'root/usr/bin/llm-do'))
  })
})
