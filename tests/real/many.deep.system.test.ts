/** A hundred commands at once: each has its own answer, and nothing of them stays. */
import { expect, test } from 'vitest'
import { runCli } from '../support/cli.ts'
import { expectNothingLeft, newMark, takeSnapshot } from '../support/leftovers.ts'
import { describeWith } from '../support/needs.ts'
import { directoryWith } from './directory.ts'

const MANY = Array.from({ length: 100 }, (_, index) => index)
const LONG = { timeout: 180_000 }

describeWith(['bwrap', 'userns'], 'a hundred runs at once', () => {
  test('each get their own input, output and exit status', LONG, async () => {
    const mark = newMark()
    const before = await takeSnapshot({ mark })
    const cwd = await directoryWith()
    // One home for all: the first ones also meet in its cache.
    const env = { HOME: await directoryWith() }
    const results = await Promise.all(
      MANY.map(async (index) => {
        const script = `test -z "${mark}" || { read word; echo "<$word>"; echo "${index} err" >&2; exit ${index}; }`
        // A loaded machine may take long; the deadline is not what this is about.
        const { status, stdout, stderr } = await runCli(['--timeout', '3m', '-c', script], {
          cwd,
          env,
          stdin: `in ${index}\n`,
        })
        return { status, stdout: stdout.toString(), stderr: stderr.toString() }
      }),
    )
    expect(results).toEqual(
      MANY.map((index) => ({ status: index, stdout: `<in ${index}>\n`, stderr: `${index} err\n` })),
    )
    await expectNothingLeft({ before, mark })
  })
})
