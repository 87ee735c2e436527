/**
 * A word that is no verb. It once went to "the next llm-do on PATH", which in npm's layout was the
 * same command under another name, and that forwarded it again: a fork bomb. So each call has a limit of processes, which counts for no root.
 */
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'vitest'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { checkoutFor } from '../support/users.ts'
import { expectRefused } from './refused-words.ts'

const plain = () => join(checkoutFor('plain'), 'bin/llm-do')

/** By what each starts the command. npm.deep has the commands of npm's packages; other packages have this very program. */
const WAYS: readonly (readonly [string, (directory: string) => Promise<string>])[] = [
  ['the checkout', async () => plain()],
  [
    'a link to it',
    async (directory) => {
      await symlink(plain(), join(directory, 'llm-do'))
      return join(directory, 'llm-do')
    },
  ],
  [
    'a script that starts it',
    async (directory) => {
      await writeFile(join(directory, 'llm-do'), `#!/bin/sh\nexec '${plain()}' "$@"\n`, { mode: 0o755 })
      return join(directory, 'llm-do')
    },
  ],
]

describeWith('root', 'a word that is no verb starts nothing, by', () => {
  test.each(WAYS)('%s', async (_, make) => {
    const directory = join(await temporaryDirectory({ mode: 0o755 }), 'bin')
    await mkdir(directory)
    await expectRefused(await make(directory))
  })
})
