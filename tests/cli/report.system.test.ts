/** `llm-do report`: what it prints of real runs, and what it says of files that are none. */
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { testWith } from '../support/needs.ts'

const report = (cwd: string, ...files: readonly string[]) => runCli(['report', ...files], { program: 'llm-do', cwd })

interface Data {
  readonly runs: readonly (Readonly<Record<string, unknown>> | null)[]
  readonly about: { readonly files: readonly string[]; readonly problems: readonly string[] }
}
const dataOf = (html: Buffer): Data =>
  JSON.parse(/<script id="data" type="application\/json">(.*?)<\/script>/s.exec(html.toString())?.[1] ?? '') as Data

testWith('userns', 'an audit log and results of a batch become one page', async () => {
  const cwd = await temporaryDirectory({ mode: 0o755 })
  await runCli(['--audit', 'log', '--allow-host', 'a.example', '--', 'getent', 'hosts', 'b.example'], { cwd })
  writeFileSync(join(cwd, 'tasks'), '{"id":"one","command":["true"]}\n')
  await runCli(['batch', 'tasks', '--results', 'results'], { program: 'llm-do', cwd })
  const { status, stdout, stderr } = await report(cwd, 'log', 'results')
  expect([status, stderr.toString()]).toEqual([0, ''])
  const { runs, about } = dataOf(stdout)
  expect(runs).toEqual([
    expect.objectContaining({
      c: 'getent hosts b.example',
      k: 'failed',
      denials: [
        { layer: 'network', what: 'resolve b.example', count: expect.any(Number), fix: '--allow-host b.example' },
      ],
    }),
    expect.objectContaining({ c: 'one', k: 'succeeded' }),
    null,
  ])
  expect(about).toEqual({ files: ['log', 'results'], problems: [], problemCount: 0 })

  // A line that was changed: the page has the runs, and says so.
  writeFileSync(join(cwd, 'log'), readFileSync(join(cwd, 'log'), 'utf8').replace('"prev":"0', '"prev":"1'))
  appendFileSync(join(cwd, 'log'), 'half a li')
  const changed = await report(cwd, 'log')
  expect(changed.status).toBe(1)
  const problems = [
    expect.stringMatching(/^log: line 1: does not continue the line before/),
    'log: line 2: neither a run of an audit log nor one of a batch',
  ]
  expect(dataOf(changed.stdout).about.problems).toEqual(problems)
  expect(changed.stderr.toString()).toContain(`llm-do: ${problems[1]}\n`)
})

test('a file without a run, none, and a directory are refused before anything is printed', async () => {
  const cwd = await temporaryDirectory({ mode: 0o755 })
  writeFileSync(join(cwd, 'text'), 'no run\n')
  for (const [file, message] of [
    ['text', 'text: no runs (expected lines of an audit log or of a batch)'],
    ['missing', 'missing: no such file'],
    ['.', 'expected a regular file, got a directory'],
  ] as const) {
    const { status, stdout, stderr } = await report(cwd, file)
    expect([status, stdout.toString()]).toEqual([125, ''])
    expect(stderr.toString()).toContain(message)
  }
})
