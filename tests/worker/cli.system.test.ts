/** Workers from the command line: an answer for the session is remembered in it alone. The log: workers.md of tests/cli. */
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { cliWords } from '../support/cli.ts'
import { describeWith } from '../support/needs.ts'
import { project } from './support.ts'

const file = (yaml: string) => `---\n${yaml}\n---\nDo it.\n`

describeWith(['userns'], 'approvals', () => {
  /** Types answers at a new terminal; all commands are of one session. */
  async function typed(cwd: string, home: string, commands: readonly string[], replies: string) {
    await writeFile(path.join(home, 'script.sh'), commands.join('\n'))
    const { stdout } = await execa('script', ['-qec', 'sh "$HOME/script.sh"', '/dev/null'], {
      cwd,
      input: replies,
      env: { PATH: process.env['PATH'], HOME: home, XDG_RUNTIME_DIR: path.join(home, 'runtime') },
      extendEnv: false,
      timeout: 60_000,
      reject: false,
    })
    return stdout.replaceAll('\r', '')
  }

  test('an answer for the session holds for these very words and in it alone, and no ends with status 126', async () => {
    const [cwd, home] = [
      await project({ 'w.worker': file('name: w\nshell_default: ask') }),
      await project({ 'runtime/x': '' }),
    ]
    const asking = (word: string) => cliWords(['--worker', 'w', '--', 'echo', word]).join(' ')
    const last = [`${asking('third')} </dev/null`, 'echo last $?']
    const commands = [asking('first'), asking('first'), asking('other'), 'echo status $?', ...last]
    // Other words bring the question back, up to five times.
    const session = await typed(cwd, home, commands, 'what\ns\nn\n1\n2\n3\n4\n5\ny\n')
    // The question shows the word behind `echo`, and does not end its own line.
    const printed = (word: string, text = session) => text.match(new RegExp(`(?<!echo )${word}$`, 'gm'))?.length ?? 0
    expect(session.match(/wants to run:/g)).toHaveLength(3)
    expect([printed('first'), printed('other'), printed('third')]).toEqual([2, 0, 0])
    for (const said of ['the answer was no', 'status 126', 'last 126']) expect(session).toContain(said)
    const next = await typed(cwd, home, [asking('first')], 'n\n')
    expect([next.match(/wants to run:/g)?.length, printed('first', next)]).toEqual([1, 0])
  })
})
