/** Names that are protected unless the policy opens them: what a run did to them is told in its result. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { ENGINES, sh } from './chain.ts'

for (const engine of ENGINES) {
  describeWith([engine, 'userns'], `with ${engine}`, () => {
    const warningsOf = async (options: readonly string[], script: string) => {
      const cwd = await temporaryDirectory({ mode: 0o755 })
      mkdirSync(join(cwd, '.vscode'))
      writeFileSync(join(cwd, '.vscode', 'tasks.json'), 'host\n')
      const words = ['--json', '--engine', engine, '--rw', '.', ...options, '--', ...sh(script)]
      // A second run finds what the first has left for the client, and must tell all the same.
      const runs = [await runCli(words, { cwd }), await runCli(words, { cwd })]
      return runs.map(({ stdout }) => (JSON.parse(stdout.toString()) as { warnings: string[] }).warnings)
    }

    test('a change of an opened name is told, each time', async () => {
      const warning = 'tasks.json, which Visual Studio Code may run or obey'
      const warnings = await warningsOf(['--protect-not', '.vscode'], 'echo x >>.vscode/tasks.json')
      expect(warnings).toEqual([[expect.stringContaining(warning)], [expect.stringContaining(warning)]])
    })

    test('a run that leaves it alone says nothing', async () => {
      expect(await warningsOf(['--protect-not', '.vscode'], 'cat .vscode/tasks.json')).toEqual([[], []])
    })
  })
}
