/** Words that are no verbs, given to a command with a limit of processes. */
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { execa } from 'execa'
import { expect } from 'vitest'
import { temporaryDirectory } from '../support/directory.ts'

/** An id of this file alone: the limit counts all processes of a user. */
const ALONE = ['setpriv', '--reuid', '65471', '--regid', '65471', '--clear-groups', '--']
const LIMITED = ['timeout', '-s', 'KILL', '20', ...ALONE, 'prlimit', '--nproc=60', '--core=0']

/** Both are said to be no verb; no program named `llm-do` is started for them, neither this one again nor another. */
export async function expectRefused(program: string): Promise<void> {
  const other = await temporaryDirectory({ mode: 0o755 })
  await writeFile(join(other, 'llm-do'), '#!/bin/sh\necho another program\n', { mode: 0o755 })
  const env = { PATH: [other, dirname(program), process.env['PATH']].join(':'), HOME: other }
  const [file = '', ...words] = [...LIMITED, program]
  const call = (word: string) => execa(file, [...words, word], { env, extendEnv: false, reject: false, cwd: other })
  expect(await call('--version'), 'the control').toMatchObject({ exitCode: 0 })
  const asked = [await call('ls'), await call('exce')]
  expect(asked.map(({ exitCode, stdout, stderr }) => [exitCode, stdout, stderr.split('\n')[0]])).toEqual([
    [125, '', 'llm-do: error USAGE: no command "ls". Did you mean "ps"?'],
    [125, '', 'llm-do: error USAGE: no command "exce". Did you mean "exec"?'],
  ])
}
