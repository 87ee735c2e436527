/** llm-do-exec in the place of a shell: the same words print the same and end the same way as with sh and bash themselves. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { runHere } from '../real/in-process.ts'
import { programFor } from '../support/cli.ts'
import { newDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { becoming, currentUser, type User } from '../support/users.ts'

const FILES = {
  'file.sh': 'echo "file $0 $1"; false; echo "after $?"',
  Makefile: ['all:', '\t@echo $$0 made by $$(id -un); cd .. && pwd', '\t@test -n "$$LLM_DO_SANDBOX"', ''].join('\n'),
  'fails.mk': [
    'SHELL := $(SHELL)',
    '.SHELLFLAGS := -euo pipefail -c',
    'all:',
    '\tfalse | true; echo not ended',
    '',
  ].join('\n'),
  'package.json': JSON.stringify({ scripts: { where: 'echo "in $LLM_DO_SANDBOX:"', fails: 'exit 7' } }),
} as const

interface End {
  readonly status: number | undefined
  readonly stdout: string
}

async function inDirectory<T>(owner: User, act: (directory: string, home: string) => Promise<T>): Promise<T> {
  const { path, remove } = await newDirectory({ owner, mode: 0o755 })
  try {
    const work = join(path, 'work')
    mkdirSync(work)
    for (const [name, text] of Object.entries(FILES)) writeFileSync(join(work, name), text)
    return await act(work, path)
  } finally {
    await remove()
  }
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
      await inDirectory(currentUser(), async (work) => {
        const real = await byShell(shell, words, work)
        // A shell that a signal has ended has no exit status.
        expect(await bySandbox(words, work)).toEqual({ ...real, status: real.status ?? 143 })
      })
    })
  })

  const started = (home: string, argv: readonly string[]) => {
    const [file = '', ...words] = [...becoming(currentUser()), ...argv]
    return execa(file, words, {
      cwd: join(home, 'work'),
      env: { PATH: process.env.PATH, HOME: home, LANG: 'C.UTF-8' },
      extendEnv: false,
      reject: false,
      stdin: 'ignore',
    })
  }

  test('are those of make, with SHELL and .SHELLFLAGS', async () => {
    await inDirectory(currentUser(), async (_, home) => {
      const shell = `SHELL=${programFor(currentUser())}`
      expect(await started(home, ['make', '-s', shell])).toMatchObject({
        exitCode: 0,
        stdout: '/bin/sh made by sandbox\n/',
      })
      const failed = await started(home, ['make', '-s', '-f', 'fails.mk', shell])
      expect(failed).toMatchObject({ exitCode: 2, stdout: '' })
      expect(failed.stderr).toContain('fails.mk')
    })
  })

  test('are those of npm, with script-shell', async () => {
    await inDirectory(currentUser(), async (_, home) => {
      const run = (script: string) =>
        started(home, ['npm', 'run', '--silent', `--script-shell=${programFor(currentUser())}`, script])
      expect(await run('where')).toMatchObject({ exitCode: 0, stdout: 'in namespace:' })
      expect(await run('fails')).toMatchObject({ exitCode: 7, stdout: '' })
    })
  })

  test('are those of programs that wrap a command by a prefix which ends in -c', async () => {
    await inDirectory(currentUser(), async (_, home) => {
      const line = `'${programFor(currentUser())}' -c 'echo a && echo "$LLM_DO_SANDBOX" < /dev/null'`
      expect(await started(home, ['/bin/bash', '-c', line])).toMatchObject({ exitCode: 0, stdout: 'a\nnamespace' })
    })
  })
})
