/** The end of a run: by a signal to the runner, by the timeout, by its own output; and nothing delays it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import { cliWords } from '../support/cli.ts'
import { expectNothingLeft, newMark, takeSnapshot } from '../support/leftovers.ts'
import { describeWith } from '../support/needs.ts'
import { directoryWith } from './directory.ts'

/** Starts a script that prints `ready` when it is. */
async function start(script: string, options: readonly string[] = []) {
  const [file = '', ...words] = cliWords([...options, '-c', script])
  const env = { PATH: process.env.PATH, TMPDIR: process.env.TMPDIR, HOME: await directoryWith() }
  const cwd = await directoryWith()
  const child = spawn(file, words, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const [out, err]: [Buffer[], Buffer[]] = [[], []]
  child.stderr.on('data', (chunk: Buffer) => err.push(chunk))
  child.stdout.on('data', (chunk: Buffer) => out.push(chunk))
  return {
    cwd,
    ready: once(child.stdout, 'data'),
    signal: (name: NodeJS.Signals) => void child.kill(name),
    end: once(child, 'close').then(([status, killedBy]) => ({
      status: status as number | null,
      killedBy: killedBy as string | null,
      out: Buffer.concat(out).toString(),
      err: Buffer.concat(err).toString(),
    })),
  }
}

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
      const { ready, signal, end } = await start(`${trap}; ${STAYERS(mark)}; while :; do sleep 0.1; done`)
      await ready
      signal(name)
      expect(await end).toMatchObject({
        status: 3,
        killedBy: null,
        out: 'ready\ntidy\n',
        // The shell may say first how its last child ended.
        err: expect.stringMatching(`^(\\w+\n)?llm-do: cancelled by ${name}(; \\d+ process(es)? killed)?\n$`),
      })
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
