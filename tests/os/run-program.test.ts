import { describe, expect, test } from 'vitest'
import { type ProgramCall, runProgram, runProgramSync } from '../../src/os/run-program.ts'

const shell = (script: string): ProgramCall => ({ file: '/bin/sh', argv: ['-c', script] })

const ENDS: readonly (readonly [what: string, call: ProgramCall, end: object])[] = [
  ['success', shell('echo out; echo err >&2'), { ok: true, status: 0, stdout: 'out\n', stderr: 'err\n', why: '' }],
  [
    'a failure that says why',
    shell('echo out; echo first >&2; echo second >&2; exit 3'),
    { ok: false, status: 3, stdout: 'out\n', why: 'first' },
  ],
  ['a failure that says nothing', shell('exit 3'), { ok: false, status: 3, why: 'status 3' }],
  ['a program that is not there', { file: '/nowhere/program', argv: [] }, { ok: false, status: 'ENOENT', stdout: '' }],
  ['a death by a signal', shell('kill -TERM $$'), { ok: false, status: undefined, why: 'SIGTERM' }],
  [
    'no variables but the path',
    shell('env | grep -v "^_=\\|^PWD="'),
    { stdout: expect.stringMatching(/^PATH=\S+\n$/) },
  ],
  ['an empty stdin and the root', shell('cat; pwd'), { stdout: '/\n' }],
]

describe.each([
  ['asynchronously', runProgram],
  ['synchronously', async (call: ProgramCall) => runProgramSync(call)],
])('a short program that is run %s', (_, run) => {
  test.each(ENDS)('%s', async (_what, call, end) => {
    expect(await run(call)).toMatchObject({ inTime: true, ...end })
  })

  test('is killed when it prints more than it may', async () => {
    const call = { ...shell('yes; echo never >&2'), mostOutput: 1000 }
    const { ok, status, stdout, stderr } = await run(call)
    expect({ ok, isNumber: typeof status === 'number', stderr }).toEqual({ ok: false, isNumber: false, stderr: '' })
    expect(stdout.length).toBeLessThan(2 ** 17) // The content of a pipe may come with it.
  })
})

test('a program that takes too long is killed, and the reason says so', async () => {
  const end = await runProgram({ ...shell('sleep 60'), patienceMs: 100 })
  expect(end).toMatchObject({ ok: false, inTime: false, why: 'no answer within 0.1 s' })
})
