/** Streams: exact, and in memory that does not grow with them. */
import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { cliWords, runCli } from '../support/cli.ts'
import { describeWith } from '../support/needs.ts'
import { directoryWith } from './directory.ts'

const GIB = 1024 ** 3
const MIB = 1024 ** 2
/** node with this program in it takes some 70 MiB, native parts 1; a stream that is kept takes 1024. */
const MOST_BYTES = 256 * MIB
const LONG = { timeout: 120_000 }

interface Process {
  readonly name: string
  /** Most bytes it ever had in memory. */
  readonly peak: number
}

const fieldOf = (status: string, field: string): string =>
  new RegExp(`^${field}:\\s*(\\S+)`, 'm').exec(status)?.[1] ?? ''

/** A process and all below it; those that end meanwhile are left out. */
async function treeBelow(root: number): Promise<readonly Process[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const statuses = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')))
  const all = statuses.map((status) => ({
    pid: Number(fieldOf(status, 'Pid')),
    parent: Number(fieldOf(status, 'PPid')),
    name: fieldOf(status, 'Name'),
    peak: Number(fieldOf(status, 'VmHWM')) * 1024,
  }))
  const below = (pid: number): typeof all =>
    all.filter(({ parent }) => parent === pid).flatMap((one) => [one, ...below(one.pid)])
  return [...all.filter(({ pid }) => pid === root), ...below(root)]
}

interface Measured {
  readonly status: number
  readonly bytes: number
  readonly text: string
  /** Name of a process -> its peak in bytes. */
  readonly peaks: Readonly<Record<string, number>>
}

/** Feeds `input` bytes through a run and watches the memory of every process of it. */
async function measure(argv: readonly string[], { cwd, input }: { cwd: string; input: number }): Promise<Measured> {
  const home = await directoryWith()
  const [file = '', ...words] = cliWords(argv)
  const child = spawn(file, words, {
    cwd,
    env: { PATH: process.env.PATH, TMPDIR: process.env.TMPDIR, HOME: home },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const seen = { bytes: 0, text: '', ended: false, peaks: {} as Record<string, number> }
  child.stdout.on('data', (chunk: Buffer) => {
    seen.bytes += chunk.length
    if (seen.text.length < MIB) seen.text += chunk.toString('latin1')
  })
  const closed = once(child, 'close').finally(() => {
    seen.ended = true
  })
  const source = spawn('head', ['-c', `${input}`, '/dev/zero'], { stdio: ['ignore', 'pipe', 'inherit'] })
  source.stdout.pipe(child.stdin)
  while (!seen.ended) {
    for (const { name, peak } of await treeBelow(child.pid ?? 0))
      seen.peaks[name] = Math.max(seen.peaks[name] ?? 0, peak)
    await sleep(20)
  }
  const [status] = await closed
  return { status, bytes: seen.bytes, text: seen.text, peaks: seen.peaks }
}

describeWith(['bwrap', 'userns'], 'streams', () => {
  test('a gibibyte goes through cat in flat memory', LONG, async () => {
    const { status, bytes, peaks } = await measure(['--', 'cat'], { cwd: await directoryWith(), input: GIB })
    expect({ status, bytes }).toEqual({ status: 0, bytes: GIB })
    expect(Object.keys(peaks)).toContain('cat')
    expect(Object.entries(peaks).filter(([, peak]) => peak > MOST_BYTES)).toEqual([])
  })

  test('a gibibyte of captured output is counted, cut and kept in flat memory', LONG, async () => {
    const cwd = await directoryWith()
    const flood = ['--json', '--output', '64k', '--timeout', '5m', '--', 'head', '-c', `${GIB}`, '/dev/zero']
    const { status, text, peaks } = await measure(flood, { cwd, input: 0 })
    const result = JSON.parse(text) as { stdout: string; truncated: { stdout: number } }
    const kept = Buffer.byteLength(result.stdout)
    expect({ status, all: result.truncated.stdout + 64 * 1024, kept: kept >= 64 * 1024 && kept < 65 * 1024 }).toEqual({
      status: 0,
      all: GIB,
      kept: true,
    })
    expect(Object.keys(peaks)).toContain('head')
    expect(Object.entries(peaks).filter(([, peak]) => peak > MOST_BYTES)).toEqual([])
  })

  test('eight mebibytes of anything come out as they went in', async () => {
    const bytes = randomBytes(8 * MIB)
    const digest = (data: Uint8Array) => createHash('sha256').update(data).digest('hex')
    const { status, stdout } = await runCli(['--', 'cat'], { cwd: await directoryWith(), stdin: bytes })
    expect({ status, digest: digest(stdout) }).toEqual({ status: 0, digest: digest(bytes) })
  })
})
