/** The client's own result compared with node's: the same run gives the same bytes, and what is handed over is what node keeps. */
import { readFile, writeFile } from 'node:fs/promises'
import { constants } from 'node:os'
import { join } from 'node:path'
import { execa } from 'execa'
import { beforeAll, expect, test } from 'vitest'
import { HeadTail } from '../../src/backends/capture.ts'
import { outcomeOfStatus } from '../../src/backends/launch-status.ts'
import { type LaunchRecord, writeLaunchFile } from '../../src/backends/namespace/launch-file.ts'
import type { LaunchStatus, Reason } from '../../src/contract.ts'
import { classify } from '../../src/report/classify.ts'
import { JSON_FORMS, type JsonForm, printJson } from '../../src/report/json.ts'
import { resultRecords, wordRecords } from '../../src/report/plan-words.ts'
import { plan } from '../report/fixtures.ts'
import { newDirectory } from '../support/directory.ts'
import { driver } from '../support/driver.ts'
import { describeWith } from '../support/needs.ts'

const ROOT = join(import.meta.dirname, '../..')
const MIB = 1024 ** 2
const place = { directory: '' }

async function makePlace(): Promise<() => Promise<void>> {
  const { path, remove } = await newDirectory()
  place.directory = path
  return remove
}

const STATUS: LaunchStatus = {
  ...{ reason: 'exit', code: '', exitCode: 0, signal: 0, exitStatus: 0 },
  ...{ cancelledBy: 0, errno: 0, step: '', path: '', detail: '' },
  ...{ begunNs: 1_000_000_000, startedNs: 1_013_016_499, endedNs: 1_025_516_500, cpuUs: 1_302, peakMemory: 1_617_920 },
  ...{ peakPids: 2, readBytes: -1, writeBytes: -1, oomKills: 0, pidsRefused: -1, throttledUs: -1, killed: 0 },
}

const exited = (code: number): Partial<LaunchStatus> => ({ exitCode: code, exitStatus: code })
const killedBy = (signal: number, reason: Reason = 'signal', exitStatus = 128 + signal): Partial<LaunchStatus> => ({
  ...{ reason, exitCode: -1, signal, exitStatus },
})
const notExecuted = (errno: number, code = 'COMMAND_NOT_FOUND', exitStatus = 127): Partial<LaunchStatus> => ({
  ...{ reason: 'setup', code, exitCode: -1, exitStatus, errno, step: 'execve', startedNs: 0 },
})
const SIGKILL = 9
const CLIMBING = `${'../'.repeat(32)}etc/hostname`

interface Case {
  readonly form?: JsonForm
  readonly status?: Partial<LaunchStatus>
  readonly stdout?: string | Uint8Array
  readonly stderr?: string | Uint8Array
  readonly command?: readonly string[]
  /** Bytes kept of each stream; null keeps all. */
  readonly cap?: number | null
  /** Processes that the launch file allows, init among them. */
  readonly most?: number
}

const planWith = (cap: number | null) => {
  const { limits, ...rest } = plan()
  return { ...rest, limits: cap === null ? limits : { ...limits, output: cap } }
}

/** Node's result of the same run. */
function byNode({ form = 'native', status = {}, stdout = '', stderr = '', command = ['true'], cap = MIB }: Case) {
  const [out, err] = [stdout, stderr].map((text) => {
    const kept = new HeadTail(cap)
    kept.push(Buffer.from(text as string))
    return kept.capture()
  })
  if (out === undefined || err === undefined) throw new Error('two streams')
  const outcome = outcomeOfStatus(JSON.stringify({ ...STATUS, ...status }), { stdout: out, stderr: err })
  return { captured: [out, err] as const, line: printJson(classify(planWith(cap), outcome, command), form) }
}

async function byClient(
  { form = 'native', status = {}, stdout = '', stderr = '', command = ['true'], cap = MIB, most = 33 }: Case,
  { program = driver('native/answer'), around = [] as readonly string[] } = {},
) {
  const planned = planWith(cap)
  const words = wordRecords(planned, { origins: {}, form })
  const records: readonly LaunchRecord[] = [...words, ...resultRecords(planned, form), ['rlimit', 6, most, most]]
  const files = ['file', 'status', 'out', 'err'].map((name) => join(place.directory, name))
  const contents = [writeLaunchFile(records), `${JSON.stringify({ ...STATUS, ...status })}\n`, stdout, stderr]
  await Promise.all(files.map((file, at) => writeFile(file, contents[at] ?? '')))
  const [file = '', ...argv] = [...around, program, ...files, ...command]
  const { stdout: printed, exitCode } = await execa(file, argv, {
    encoding: 'buffer',
    reject: false,
    stripFinalNewline: false,
    maxBuffer: 64 * MIB,
  })
  return { exitCode, printed: Buffer.from(printed) }
}

const ALL_BYTES_BELOW_80 = Buffer.from(Array.from({ length: 0x80 }, (_, byte) => byte)).toString()
const ODD_TEXT = 'é ü \u2028\u2029\u2027\u202a \ufeff \u0085 \ud7ff\ue000\uffff \u{10000}\u{10ffff}'

const TOLD: readonly (readonly [string, Case])[] = [
  ['nothing on either stream', {}],
  ['a failure', { status: exited(7) }],
  ['a failure of fewer processes than it may have', { status: { ...exited(1), peakPids: 32, killed: 30 } }],
  ['success with all the processes it may have', { status: { peakPids: 33, killed: 31 } }],
  ['every byte below 128', { stdout: ALL_BYTES_BELOW_80, stderr: ALL_BYTES_BELOW_80 }],
  ['text at the borders of UTF-8', { stdout: ODD_TEXT, stderr: `${ODD_TEXT}${ODD_TEXT}` }],
  ['words of all kinds', { command: ['sh', '', '"\\', '\n\u0001', ODD_TEXT] }],
  ['a hidden path among the words of a command that succeeds', { command: ['ls', '/root'] }],
  ['a failure that names a path which is nowhere', { status: exited(1), command: ['ls', '/x'] }],
  ['a failure that misses a name which is nowhere', { status: exited(1), stderr: 'cat: x/y: No such file\n' }],
  ['a failure that denies a file', { status: exited(1), stderr: "x: Permission denied: 'file'\n" }],
  ['a failure that names a path of /etc', { status: exited(1), command: ['cat', '/etc/shadow'] }],
  ['a byte that begins no character', { stdout: Buffer.from([0x80]) }],
  ['a byte that UTF-8 does not have', { stderr: Buffer.from([0x41, 0xff]) }],
  ['a character whose last byte begins another one', { stderr: Buffer.from([0xe2, 0x82, 0xc1]) }],
  ['a character in more bytes than it needs', { stdout: Buffer.from([0xc1, 0x81]) }],
  ['three bytes for two', { stdout: Buffer.from([0xe0, 0x9f, 0xbf]) }],
  ['four bytes for three', { stdout: Buffer.from([0xf0, 0x8f, 0xbf, 0xbf]) }],
  ['half a pair', { stdout: Buffer.from([0xed, 0xa0, 0x80]) }],
  ['more than the last character', { stdout: Buffer.from([0xf4, 0x90, 0x80, 0x80]) }],
  ['a character that is cut off', { stdout: Buffer.from([0x61, 0xe2, 0x82]) }],
  [
    'no text on stderr after a program that is missing',
    { status: notExecuted(2), stderr: Buffer.from([0xff, 1, 2, 3]) },
  ],
  ['a mebibyte, which is the cap', { stdout: 'ab\n"'.repeat(MIB / 4), stderr: 'é'.repeat(MIB / 2) }],
  ['a few bytes where few are kept', { stdout: 'abc', cap: 3 }],
  ['one byte where one is kept', { stdout: 'a', cap: 1 }],
  ['nothing where nothing is kept', { cap: 0 }],
  ['more than a mebibyte where all is kept', { stdout: 'x'.repeat(MIB + 17), cap: null }],
  ['a command that was over at once', { status: { startedNs: 0, endedNs: 1_000_000_000 } }],
  ['no usage', { status: { cpuUs: -1, peakMemory: -1, peakPids: -1 } }],
  ['disks that were not used', { status: { readBytes: 0, writeBytes: 0 } }],
  ['disks that were used', { status: { readBytes: 3 * 1024 ** 4, writeBytes: 512 } }],
  ['disks where processes were not counted', { status: { peakPids: 0, readBytes: 4096, writeBytes: 0 } }],
  ['large usage', { status: { cpuUs: 86_400_000_001, peakMemory: 4 * 1024 ** 4, peakPids: 4_194_304 } }],
]

const ENDS: readonly (readonly [string, Case])[] = [
  ...[1, 2, 6, 9, 11, 13, 15, 29, 34].map(
    (signal) => [`signal ${signal}`, { status: killedBy(signal), stdout: 'so far' }] as const,
  ),
  ['a signal that left processes', { status: { ...killedBy(11), killed: 1 } }],
  ...[0, 1, 2, 37].flatMap((killed) =>
    [killedBy(SIGKILL, 'timeout', 124), { reason: 'timeout', exitCode: 3, exitStatus: 124 } as const].map(
      (status) =>
        [
          `a timeout of exit code ${status.exitCode} with ${killed} killed`,
          { status: { ...status, killed }, stdout: 'so far', most: 99 },
        ] as const,
    ),
  ),
  ['a timeout before it began', { status: { ...killedBy(0, 'timeout', 124), startedNs: 0 } }],
  ['a limit of processor time', { status: killedBy(SIGKILL, 'cpu-time', 137) }],
  ['the memory limit', { status: { ...killedBy(SIGKILL, 'memory', 137), oomKills: 3 } }],
  ['the memory limit, by the watchdog', { status: { ...killedBy(SIGKILL, 'memory', 137), oomKills: -1, killed: 2 } }],
  ['the process limit', { status: { ...exited(2), reason: 'pids', pidsRefused: 7 } }],
  ['the system call filter', { status: killedBy(31, 'seccomp') }],
  ['a request to stop', { status: { ...killedBy(15, 'cancelled', 130), cancelledBy: 2 } }],
  ['a caller that is gone', { status: killedBy(SIGKILL, 'cancelled', 143) }],
  ...(
    [
      [constants.errno.ENOENT, 'COMMAND_NOT_FOUND', 127],
      [constants.errno.EACCES, 'COMMAND_NOT_EXECUTABLE', 126],
      [constants.errno.ELOOP, 'COMMAND_NOT_EXECUTABLE', 126],
    ] as const
  ).flatMap(([errno, code, exitStatus]) =>
    [['a "b\\c\' d', '\n'], ['ü'], ['']].map(
      (command) =>
        [
          `errno ${errno} of the program ${JSON.stringify(command)}`,
          { status: notExecuted(errno, code, exitStatus), command },
        ] as const,
    ),
  ),
  ...[0, 499, 500, 999, 1_000, 499_500, 500_000, 1_499_999, 12_500_000, 60_000_000_499, 8e13].map(
    (ns) => [`a run of ${ns} ns`, { status: { endedNs: STATUS.startedNs + ns, cpuUs: ns } }] as const,
  ),
]

describeWith('gcc', 'the answer of the client', () => {
  beforeAll(makePlace)

  async function expectSame(run: Case, form: JsonForm): Promise<void> {
    const { exitCode, printed } = await byClient({ ...run, form })
    const { line } = byNode({ ...run, form })
    expect({ form, exitCode, printed: printed.toString() }).toEqual({ form, exitCode: 0, printed: line })
  }

  test.each(TOLD)('is what node would print, in each form: %s', async (_, run) => {
    for (const form of JSON_FORMS) await expectSame(run, form)
  })

  test.each(JSON_FORMS)('is what node would print of each end: %s', async (form) => {
    for (const [, run] of ENDS) await expectSame(run, form)
  })

  test.each<readonly [string, Case]>([
    ['a byte above the cap', { stdout: 'abcd', cap: 3 }],
    ['many times the cap', { stdout: Buffer.from('0123456789'.repeat(1000)), stderr: 'abcdef', cap: 7 }],
    ['a signal, and a path that is hidden', { status: killedBy(11), command: ['ls', '/root'] }],
    ['a signal, and words of a refusal', { status: killedBy(11), stderr: 'x: Operation not permitted\n' }],
    ['a failure that misses a name which leads out', { status: exited(1), stderr: `x: ${CLIMBING}: No such file\n` }],
    ['a failure of a command whose words lead out', { status: exited(1), command: ['cat', CLIMBING] }],
    ['a failure that denies a socket', { status: exited(1), stderr: 'bind: Permission denied\n' }],
    ['a timeout of a Python that printed nothing', { status: killedBy(9, 'timeout', 124), command: ['python3', 'x'] }],
    ['an errno without words', { status: notExecuted(constants.errno.EIO, 'COMMAND_NOT_EXECUTABLE', 126) }],
    ['a missing interpreter', { status: { ...notExecuted(2, 'COMMAND_NOT_EXECUTABLE', 126), step: 'interpreter' } }],
    ['what the engine has printed', { status: { ...notExecuted(2), detail: 'bwrap: ...' } }],
    ['the report of a lost run', { status: { reason: 'lost', code: 'BACKEND_FAILED', exitCode: -1 } }],
    ['a sandbox that failed', { status: { ...notExecuted(2), code: 'SETUP_FAILED', step: 'launch: fork' } }],
    ['the limit of the disk', { status: killedBy(SIGKILL, 'disk', 137) }],
    ['a protected name', { status: { reason: 'protected', exitStatus: 126 } }],
    ['a success in spite of a kill for memory', { status: { oomKills: 1 } }],
    ['a success in spite of a refused process', { status: { pidsRefused: 1 } }],
    ['a failure after which as many processes were killed as it may have', { status: { ...exited(1), killed: 31 } }],
    ['a failure of as many processes as it may have', { status: { ...exited(1), peakPids: 33 } }],
    ['a failure that names a path which is hidden', { status: exited(1), command: ['ls', '/root'] }],
  ])('is left to node after %s, with what was kept', async (_, run) => {
    const { exitCode, printed } = await byClient(run)
    const { captured } = byNode(run)
    const [line = '', kept] = [printed.toString('latin1').split('\n', 1)[0], printed]
    const handedOver = JSON.parse(line) as Record<'stdout' | 'stderr', { head: number; bytes: number }>
    expect(exitCode).toBe(3)
    expect([handedOver.stdout, handedOver.stderr]).toEqual(
      captured.map(({ head, bytes }) => expect.objectContaining({ head: head.length, bytes })),
    )
    const expected = Buffer.concat(captured.flatMap(({ head, tail }) => [head, tail]))
    expect(kept.subarray(line.length + 1).equals(expected)).toBe(true)
  })

  test('is made in memory that does not grow with what is printed', async () => {
    const run = { stdout: Buffer.alloc(64 * MIB, '0123456789'), cap: MIB }
    // Kilobytes of address space: the program, one cap, and little more.
    const small = { program: driver('native/answer-small'), around: ['prlimit', `--as=${16 * MIB}`] }
    const { printed } = await byClient(run, small)
    const [{ head, tail }] = byNode(run).captured
    const from = printed.indexOf('\n') + 1
    expect(printed.subarray(from).equals(Buffer.concat([head, tail]))).toBe(true)
  })

  test('keeps the same ends of a stream as node, wherever the cap lies', async () => {
    const text = await readFile(join(ROOT, 'LICENSE'))
    for (const cap of [0, 1, 2, 3, 10, 99, 100, 101, text.length - 1]) {
      const { printed } = await byClient({ stdout: text, cap })
      const [{ head, tail }] = byNode({ stdout: text, cap }).captured
      expect({ cap, kept: printed.subarray(printed.indexOf('\n') + 1).toString() }).toEqual({
        cap,
        kept: Buffer.concat([head, tail]).toString(),
      })
    }
  })
})
