/** The end of a run: by a signal to the runner, by the timeout, by its own output; and nothing delays it. */
import { once } from 'node:events'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { cliWords, startCli } from '../support/cli.ts'
import { expectNothingLeft, newMark, takeSnapshot } from '../support/leftovers.ts'
import { describeWith } from '../support/needs.ts'
import { directoryWith } from './directory.ts'

/** Processes that try to stay: daemons that ignore signals in their own sessions, and a stopped one. */
const STAYERS = (mark: string) =>
  `for i in 1 2 3; do (setsid sh -c 'trap "" HUP INT TERM; sleep 300' ${mark} &) ; done; sh -c 'kill -STOP $$' ${mark} & echo ready`

describeWith(['userns'], 'a signal to the runner', () => {
  test.each(['SIGINT', 'SIGTERM', 'SIGQUIT'] as const)(
    '%s reaches the command, cancels the run, and leaves nothing',
    async (name) => {
      const mark = newMark()
      const before = await takeSnapshot({ mark })
      const trap = `trap 'echo tidy; exit 3' ${name.slice(3)}`
      const script = `${trap}; ${STAYERS(mark)}; while :; do sleep 0.1; done`
      const child = startCli(['-c', script], { cwd: await directoryWith(), env: { HOME: await directoryWith() } })
      await once(child.stdout, 'data')
      child.kill(name)
      const { exitCode, stdout, stderr } = await child
      expect({ exitCode, stdout }).toEqual({ exitCode: 3, stdout: 'ready\ntidy' })
      // The shell may say first how its last child ended.
      expect(stderr).toMatch(new RegExp(`^(\\w+\n)?llm-do: cancelled by ${name}(; \\d+ process(es)? killed)?$`))
      await expectNothingLeft({ before, mark })
    },
  )
})

describeWith(['userns'], 'stdin', () => {
  test.each([
    ['that is closed is an end of file', ['-c', 'cat; echo $?'], '"$@" <&-', /^[01]$/],
    ['that the command does not read ends with it', ['--', 'true'], 'yes | "$@"; echo $?', /^0$/],
    ['without a writer does not keep a command', ['--', 'true'], 'exec 9<>pipe; "$@" <&9; echo $?', /^0$/],
    ['may be a file', ['--', 'cat'], '"$@" <data', /^from a file$/],
  ])('%s', async (_, words, script, printed) => {
    const cwd = await directoryWith({ data: 'from a file\n' })
    const env = { PATH: process.env.PATH, TMPDIR: process.env.TMPDIR, HOME: cwd }
    const line = ['-c', `mkfifo pipe; ${script}`, 'bash', ...cliWords(words)]
    const { stdout } = await execa('bash', line, { cwd, env, extendEnv: false, stderr: 'ignore' })
    expect(stdout).toMatch(printed)
  })
})
