/** Streams need memory that does not grow with them. That they are exact is the contract's row results.bytes. */
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { cliWords } from '../support/cli.ts'
import { describeWith } from '../support/needs.ts'
import { directoryWith } from './directory.ts'

const MIB = 1024 ** 2
const FLOOD = 320 * MIB
/** Node with this program needs some 100 MiB, the native part 1; a kept stream needs 320. */
const MOST_BYTES = 256 * MIB

/** Runs words with a flood on stdin; prints the number of bytes from stdout, their end, and the largest peak of a process. */
const MEASURE = `
import json, resource, subprocess, sys
flood = subprocess.Popen(['head', '-c', sys.argv[1], '/dev/zero'], stdout=subprocess.PIPE)
run = subprocess.Popen(sys.argv[2:], stdin=flood.stdout, stdout=subprocess.PIPE)
flood.stdout.close()
count, end = 0, b''
while chunk := run.stdout.read(1 << 16):
    count, end = count + len(chunk), (end + chunk)[-(1 << 20):]
status = run.wait()
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
print(json.dumps({'status': status, 'bytes': count, 'end': end.decode(), 'peak': peak}))`

async function measure(argv: readonly string[], input: number) {
  const cwd = await directoryWith()
  const env = { PATH: process.env.PATH, TMPDIR: process.env.TMPDIR, HOME: cwd }
  const words = ['-c', MEASURE, `${input}`, ...cliWords(argv)]
  const { stdout } = await execa('python3', words, { cwd, env, extendEnv: false })
  return JSON.parse(stdout) as { status: number; bytes: number; end: string; peak: number }
}

describeWith(['userns', 'python'], 'a flood', () => {
  test('goes through cat in flat memory', async () => {
    const { status, bytes, peak } = await measure(['--', 'cat'], FLOOD)
    expect({ status, bytes, isFlat: peak < MOST_BYTES }, `${peak}`).toEqual({ status: 0, bytes: FLOOD, isFlat: true })
  })

  test('of captured output is counted, cut and kept in flat memory', async () => {
    const words = ['--json', '--output', '64k', '--timeout', '5m', '--', 'head', '-c', `${FLOOD}`, '/dev/zero']
    const { status, end, peak } = await measure(words, 0)
    const { stdout, truncated } = JSON.parse(end) as { stdout: string; truncated: { stdout: number } }
    const isKept = stdout.length >= 64 * 1024 && stdout.length < 65 * 1024
    expect({ status, all: truncated.stdout + 64 * 1024, isKept, isFlat: peak < MOST_BYTES }, `${peak}`).toEqual({
      status: 0,
      all: FLOOD,
      isKept: true,
      isFlat: true,
    })
  })
})
