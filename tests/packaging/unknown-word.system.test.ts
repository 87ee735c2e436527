/**
 * A word that is not a verb. It once went to "the next llm-do on PATH", which in npm's layout was the
 * same command under another name, and that forwarded it again: a fork bomb. So each call has a limit of processes, which does not bind root.
 */
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { installPackages } from '../support/npm-packages.ts'
import { checkoutFor } from '../support/users.ts'

/** An id of this file alone: the limit counts all processes of a user. */
const ALONE = ['setpriv', '--reuid', '65471', '--regid', '65471', '--clear-groups', '--']
const LIMITED = ['timeout', '-s', 'KILL', '20', ...ALONE, 'prlimit', '--nproc=60', '--core=0']

/** Both are said to be no verb; no program named `llm-do` is started for them, neither this one again nor another. */
async function expectRefused(program: string): Promise<void> {
  const other = await temporaryDirectory({ mode: 0o755 })
  await writeFile(join(other, 'llm-do'), '#!/bin/sh\necho another program\n', { mode: 0o755 })
  const env = { PATH: [other, dirname(program), process.env['PATH']].join(':'), HOME: other }
  const [file = '', ...words] = [...LIMITED, program]
  const call = (word: string) => execa(file, [...words, word], { env, extendEnv: false, reject: false, cwd: other })
  expect(await call('--version'), 'the control').toMatchObject({ exitCode: 0 })
  const asked = [await call('ls'), await call('exce')]
  expect(asked.map(({ exitCode, stdout, stderr }) => [exitCode, stdout, stderr.split('\n')[0]])).toEqual([
    [125, '', 'llm-do: error USAGE: no command "ls".'],
    [125, '', 'llm-do: error USAGE: no command "exce". Did you mean "exec"?'],
  ])
}

const plain = () => join(checkoutFor('plain'), 'bin/llm-do')

/** Each fills the directory `bin` that the command is started from. */
const WAYS: readonly (readonly [string, (bin: string) => Promise<unknown>])[] = [
  ['a link to the checkout', (bin) => symlink(plain(), join(bin, 'llm-do'))],
  [
    'a script that starts it',
    (bin) => writeFile(join(bin, 'llm-do'), `#!/bin/sh\nexec '${plain()}' "$@"\n`, { mode: 0o755 }),
  ],
  [
    'the commands of npm',
    async (bin) => {
      const prefix = dirname(bin)
      await installPackages(join(prefix, 'lib/node_modules'))
      await execa('chmod', ['-R', 'go+rX', prefix])
      for (const name of ['llm-do', 'llm-do-exec'])
        await symlink(`../lib/node_modules/llm-do-exec/bin/${name}`, join(bin, name))
    },
  ],
]

describeWith('root', 'a word that is no verb starts nothing, by', () => {
  test('the checkout', () => expectRefused(plain()))

  test.each(WAYS)('%s', async (_, make) => {
    const bin = join(await temporaryDirectory({ mode: 0o755 }), 'bin')
    await mkdir(bin)
    await make(bin)
    await expectRefused(join(bin, 'llm-do'))
  })
})
