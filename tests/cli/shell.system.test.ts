/** llm-do-exec in the place of a shell: the same words print the same and end the same way as with sh and bash themselves. */
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { directoryWith } from '../real/directory.ts'
import { runHere } from '../real/in-process.ts'
import { describeWith } from '../support/needs.ts'

interface End {
  readonly status: number | undefined
  readonly stdout: string
}

async function byShell(shell: string, words: readonly string[], cwd: string): Promise<End> {
  const { exitCode, stdout } = await execa(shell, words, {
    cwd,
    reject: false,
    stdin: 'ignore',
    stripFinalNewline: false,
  })
  return { status: exitCode, stdout }
}

/** How the command line is read is this test's subject, and that is the same in this process. */
async function bySandbox(words: readonly string[], cwd: string): Promise<End> {
  const result = await runHere(words, { cwd })
  return { status: result.exitStatus, stdout: result.stdout }
}

describeWith('userns', 'the words of a shell', () => {
  // exec-arguments.test.ts has the other ways to divide a line.
  describe.each<[shell: string, rows: readonly (readonly string[])[]]>([
    [
      '/bin/sh',
      [
        ['-c', 'echo "$0" "$@"', 'name', 'a b', ''],
        ['-c', '--', 'echo "$0" "$@"', 'name'],
        ['-ec', 'echo a; false; echo b'],
        ['-e', './file.sh', 'arg'],
      ],
    ],
    [
      '/bin/bash',
      [
        ['-lc', 'shopt login_shell; echo "$0" "$@"', 'name', 'arg'],
        ['-euo', 'pipefail', '-c', 'false | true; echo not ended'],
        ['--noprofile', '--norc', '-eo', 'pipefail', './file.sh', 'arg'],
        ['-lc', 'kill -TERM $$'],
      ],
    ],
  ])('do what %s does', (shell, rows) => {
    test.each(rows.map((words) => [words]))('%j', async (words) => {
      const work = await directoryWith({ 'file.sh': 'echo "file $0 $1"; false; echo "after $?"' })
      const real = await byShell(shell, words, work)
      // A shell that a signal has ended has no exit status.
      expect(await bySandbox(words, work)).toEqual({ ...real, status: real.status ?? 143 })
    })
  })
})
