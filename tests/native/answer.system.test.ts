/** The client's own result compared with node's: the same run gives the same bytes, and what is handed over is what node keeps. */
import { readFile, writeFile } from 'node:fs/promises'
import { constants } from 'node:os'
import { join } from 'node:path'
import { execa } from 'execa'
import { beforeAll, expect, test } from 'vitest'
import { HeadTail } from '../../src/backends/capture.ts'
import { outcomeOfStatus } from '../../src/backends/launch-status.ts'
import { type LaunchRecord, writeLaunchFile } from '../../src/backends/namespace/launch-file.ts'
import type { LaunchStatus } from '../../src/contract.ts'
import { classify } from '../../src/report/classify.ts'
import { endRecords } from '../../src/report/foreseen-ends.ts'
import { JSON_FORMS, type JsonForm, printJson } from '../../src/report/json.ts'
import { templateRecords } from '../../src/report/result-template.ts'
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
  ...{ cause: 'exit', waitStatus: 0, cancelledBy: 0, errno: 0, step: '', path: '', detail: '' },
  ...{ begunNs: 1_000_000_000, startedNs: 1_013_016_499, endedNs: 1_025_516_500, cpuUs: 1_302, peakMemory: 1_617_920 },
  ...{ peakPids: 2, readBytes: -1, writeBytes: -1, oomKills: 0, pidsRefused: -1, throttledUs: -1, killed: 0 },
}

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

/** What node tells of the same run. */
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
  const ends = endRecords(planned, { origins: {}, form, isAudited: false })
  const records: readonly LaunchRecord[] = [...ends, ...templateRecords(planned, form), ['rlimit', 6, most, most]]
  const files = ['file', 'status', 'out', 'err'].map((name) => join(place.directory, name))
  const contents = [writeLaunchFile(records), `${JSON.stringify({ ...STATUS, ...status })}\n`, stdout, stderr]
  await Promise.all(files.map((file, at) => writeFile(file, contents[at] ?? '')))
  const [file = '', ...words] = [...around, program, ...files, ...command]
  const { stdout: printed, exitCode } = await execa(file, words, {
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
  ['a failure', { status: { waitStatus: 7 << 8 } }],
  ['a failure of fewer processes than it may have', { status: { waitStatus: 256, peakPids: 32, killed: 30 } }],
  ['success with all the processes it may have', { status: { peakPids: 33, killed: 31 } }],
  ['every byte below 128', { stdout: ALL_BYTES_BELOW_80, stderr: ALL_BYTES_BELOW_80 }],
  ['text at the borders of UTF-8', { stdout: ODD_TEXT, stderr: `${ODD_TEXT}${ODD_TEXT}` }],
  ['words of all kinds', { command: ['sh', '', '"\\', '\n\u0001', ODD_TEXT] }],
  ['a hidden path among the words of a command that succeeds', { command: ['ls', '/root'] }],
  ['a failure that names a path which is nowhere', { status: { waitStatus: 256 }, command: ['ls', '/x'] }],
  ['a failure that names a path of /etc', { status: { waitStatus: 256 }, command: ['cat', '/etc/shadow'] }],
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

/** Of one kind, so each in one form. */
const ENDS: readonly (readonly [string, Case])[] = [
  ...[1, 2, 6, 9, 11, 13, 15].map(
    (waitStatus) => [`signal ${waitStatus}`, { status: { waitStatus }, stdout: 'so far' }] as const,
  ),
  ...[-1, 9, 15].flatMap((waitStatus) =>
    [0, 1, 2, 37].map(
      (killed) =>
        [
          `a deadline with wait status ${waitStatus} and ${killed} killed`,
          { status: { cause: 'deadline', waitStatus, killed }, stdout: 'so far', most: 99 },
        ] as const,
    ),
  ),
  ...[constants.errno.ENOENT, constants.errno.EACCES, constants.errno.ELOOP].map(
    (errno) =>
      [
        `errno ${errno} of a program that is not there`,
        {
          status: { cause: 'exec', waitStatus: -1, errno, step: 'init: exec', startedNs: 0 },
          command: ['a "b\\c\' d', '\n'],
        },
      ] as const,
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

  test('is what node would print of each end', async () => {
    for (const [index, [, run]] of ENDS.entries())
      await expectSame(run, JSON_FORMS[index % JSON_FORMS.length] as JsonForm)
  })

  test.each<readonly [string, Case]>([
    ['a byte that begins no character', { stdout: Buffer.from([0x80]) }],
    ['a byte that UTF-8 does not have', { stderr: Buffer.from([0x41, 0xff]) }],
    ['a character whose last byte begins another one', { stderr: Buffer.from([0xe2, 0x82, 0xc1]) }],
    ['a character in more bytes than it needs', { stdout: Buffer.from([0xc1, 0x81]) }],
    ['three bytes for two', { stdout: Buffer.from([0xe0, 0x9f, 0xbf]) }],
    ['four bytes for three', { stdout: Buffer.from([0xf0, 0x8f, 0xbf, 0xbf]) }],
    ['half a pair', { stdout: Buffer.from([0xed, 0xa0, 0x80]) }],
    ['more than the last character', { stdout: Buffer.from([0xf4, 0x90, 0x80, 0x80]) }],
    ['a character that is cut off', { stdout: Buffer.from([0x61, 0xe2, 0x82]) }],
    ['a byte above the cap', { stdout: 'abcd', cap: 3 }],
    ['many times the cap', { stdout: Buffer.from('0123456789'.repeat(1000)), stderr: 'abcdef', cap: 7 }],
    ['a byte where none is kept', { stdout: 'a', cap: 0 }],
    ['two bytes where one is kept', { stdout: 'ab', cap: 1 }],
    ['SIGSYS, which may be the filter', { status: { waitStatus: 31 }, stdout: 'so far' }],
    ['a signal that is not foreseen', { status: { waitStatus: 34 } }],
    ['a signal that left processes', { status: { waitStatus: 11, killed: 1 } }],
    ['a signal, and a path that is hidden', { status: { waitStatus: 11 }, command: ['ls', '/root'] }],
    ['a signal, and words of a refusal', { status: { waitStatus: 11 }, stderr: 'x: Operation not permitted\n' }],
    ['a deadline after which it exited', { status: { cause: 'deadline', waitStatus: 3 << 8 } }],
    ['a deadline before it began', { status: { cause: 'deadline', waitStatus: -1, startedNs: 0 } }],
    ['a limit of processor time', { status: { cause: 'cpu-time', waitStatus: 9 } }],
    [
      'a program that is not there and has printed',
      { status: { cause: 'exec', waitStatus: -1, errno: 2 }, stderr: 'x' },
    ],
    ['a program whose name is no ASCII', { status: { cause: 'exec', waitStatus: -1, errno: 2 }, command: ['ü'] }],
    ['a missing interpreter', { status: { cause: 'exec', waitStatus: -1, errno: 2, step: 'interpreter' } }],
    ['the report of a lost run', { status: { cause: 'lost', waitStatus: -1 } }],
    ['a kill for memory', { status: { oomKills: 1 } }],
    ['a process that was refused', { status: { pidsRefused: 1 } }],
    ['a failure after which as many processes were killed as it may have', { status: { waitStatus: 256, killed: 31 } }],
    ['a failure of as many processes as it may have', { status: { waitStatus: 256, peakPids: 33 } }],
    ['a failure that names a path which is hidden', { status: { waitStatus: 256 }, command: ['ls', '/root'] }],
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
