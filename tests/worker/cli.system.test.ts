/** Workers from the command line: an answer for the session is remembered in it alone. The log: workers.md of tests/cli. */
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { cliWords } from '../support/cli.ts'
import { describeWith } from '../support/needs.ts'
import { project } from './support.ts'

const TERMINAL = path.join(import.meta.dirname, '../programs/terminal.py')

const file = (yaml: string) => `---\n${yaml}\n---\nDo it.\n`

describeWith(['userns'], 'approvals', () => {
  /** Types an answer to each question at a new terminal; all commands are of one session. */
  async function typed(cwd: string, home: string, commands: readonly string[], replies: readonly string[]) {
    await writeFile(path.join(home, 'script.sh'), commands.join('\n'))
    const env = { PATH: process.env['PATH'], HOME: home, XDG_RUNTIME_DIR: path.join(home, 'runtime') }
    const steps = replies.map((reply) => ({ until: 'uit? ', type: `${reply}\n` }))
    const asked = { argv: ['/bin/sh', path.join(home, 'script.sh')], cwd, env, rows: 24, columns: 200, steps }
    const { stdout } = await execa('python3', [TERMINAL], { input: JSON.stringify(asked) })
    return (JSON.parse(stdout) as { readonly screen: string }).screen.replaceAll('\r', '')
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
    const session = await typed(cwd, home, commands, 'what s n 1 2 3 4 5'.split(' '))
    // The question shows the word behind `echo`, and does not end its own line.
    const printed = (word: string, text = session) => text.match(new RegExp(`(?<!echo )${word}$`, 'gm'))?.length ?? 0
    expect(session.match(/wants to run:/g)).toHaveLength(3)
    expect([printed('first'), printed('other'), printed('third')]).toEqual([2, 0, 0])
    for (const said of ['the answer was no', 'status 126', 'last 126']) expect(session).toContain(said)
    const next = await typed(cwd, home, [asking('first')], ['n'])
    expect([next.match(/wants to run:/g)?.length, printed('first', next)]).toEqual([1, 0])
  })
})
