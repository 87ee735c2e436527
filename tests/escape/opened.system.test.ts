/** Names that are protected unless the policy opens them: the result reports how a run changed them. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'

const CHANGED = [expect.stringContaining('tasks.json, which Visual Studio Code may run or obey')]

describeWith('userns', 'an opened name', () => {
  test.each([
    ['is reported when it was changed', 'echo x >>.vscode/tasks.json', CHANGED],
    ['is not reported when it was read', 'cat .vscode/tasks.json', []],
  ])('%s', async (_, script, expected) => {
    const cwd = await temporaryDirectory({ mode: 0o755 })
    mkdirSync(join(cwd, '.vscode'))
    writeFileSync(join(cwd, '.vscode', 'tasks.json'), 'host\n')
    const words = ['--json', '--rw', '.', '--protect-not', '.vscode', '--', 'sh', '-c', script]
    // The second run has the plan of the first one, and must report the same.
    const runs = [await runCli(words, { cwd }), await runCli(words, { cwd })]
    const warnings = runs.map(({ stdout }) => (JSON.parse(`${stdout}`) as { warnings: string[] }).warnings)
    expect(warnings).toEqual([expected, expected])
  })
})
