/** The audit log as the client writes it: the line that node would write, in the same chain, under the same lock. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { beforeEach, expect, test } from 'vitest'
import { tryLock } from '../../src/os/file-lock.ts'
import { verifyAudit } from '../../src/report/audit-file.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { descendantsOf, readOr, until } from '../support/processes.ts'
import { callIn, cliWords, program, runIn, runWords, settle, site, withoutNode } from './client.ts'

const logFile = (): string => join(site.current.work, 'logs', 'audit')
const audited = (...words: readonly string[]): readonly string[] => ['--audit', 'logs/audit', ...words]

beforeEach(() => mkdirSync(join(site.current.work, 'logs')))

type Line = Readonly<Record<string, unknown>>
const lines = (): readonly Line[] =>
  readFileSync(logFile(), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Line)

/** Without what differs from run to run. */
const timeless = ({ time, prev, durationMs, usage, ...rest }: Line): Line => {
  const { peakPids: _, ...counted } = usage as Record<string, number>
  return {
    ...rest,
    time: `${time}`.replace(/\d/g, '0'),
    prev: typeof prev,
    durationMs: typeof durationMs,
    usage: Object.keys(counted),
  }
}

async function expectWhole(count: number): Promise<void> {
  expect(await verifyAudit(logFile())).toMatchObject({ lines: count, problems: [] })
}

describeWith('bwrap', 'a recorded run whose plan is known', () => {
  test.each([
    [['--', 'echo', 'ü "\u2028\\'], 0],
    [['--env', 'A=b', '-c', 'echo out; echo err >&2; exit 7'], 7],
    [['--', 'no-such-program'], 127],
    [['--log', '--timeout', '1s', '-c', 'sleep 9 & sleep 9 & exec sleep 9'], 124],
    [['--json', '--', 'sh', '-c', 'kill -SEGV $$'], 139],
    [['--json=task', '--', '/etc'], 126],
  ])('%j is recorded without node, as node records it', async (words, status) => {
    await runIn(audited(...words))
    const before = Date.now()
    expect((await runIn(audited(...words), withoutNode)).status).toBe(status)
    const [byNode, byClient] = lines()
    expect(timeless(byClient ?? {})).toEqual(timeless(byNode ?? {}))
    const at = Date.parse(`${byClient?.['time']}`)
    expect(at >= before && at <= Date.now()).toBe(true)
    await expectWhole(2)
    expect(readdirSync(join(site.current.work, 'logs'))).toEqual(['audit', 'audit.lock'])
    expect(statSync(logFile()).mode & 0o777).toBe(0o600)
  })

  test.each([
    [['--', 'sh', '-c', 'sleep 9 & kill -SEGV $$'], 'signal'],
    [['--', 'no-such-\u001bprogram'], 'setup'],
    [['--json', '-c', 'echo EROFS >&2; exit 1'], 'exit'],
  ])('%j is recorded once, by node', async (words, reason) => {
    await runIn(audited(...words))
    await runIn(audited(...words))
    expect(lines().map((line) => line['reason'])).toEqual([reason, reason])
    await expectWhole(2)
  })

  test('names the rule of the worker that let it run', async () => {
    mkdirSync(join(site.current.work, 'workers'))
    writeFileSync(
      join(site.current.work, 'workers/w.worker'),
      `---
name: w
toolsets:
  shell:
    rules:
      - { pattern: echo, approval: preApproved }
      - { pattern: "printf a", approval: ask }
    default: { approval: preApproved }
---
`,
    )
    const under = (...words: readonly string[]) => audited('--worker', 'w', '--approval', 'approve_all', ...words)
    const syntax = (script: string) => under('--allow-shell-syntax', '-c', script)
    const runs: readonly (readonly [words: readonly string[], by: string])[] = [
      [under('--', 'echo', 'x'), 'rule "echo"'],
      [under('--', 'printf', 'a'), '--approval approve_all'],
      [under('--', 'true'), 'default'],
      [syntax('echo x; printf a; true'), '--approval approve_all'],
    ]
    await settle(join(site.current.work, 'workers/w.worker'))
    for (const [words] of runs) {
      await runIn(words)
      expect((await runIn(words, withoutNode)).status).toBe(0)
    }
    const told = lines().map(({ worker, decidedBy, decision }) => [worker, decidedBy, decision])
    const each = runs.map(([, by]) => ['w', by, 'run'])
    expect(told).toEqual(each.flatMap((line) => [line, line]))
  })

  test('forty at once leave forty lines in one chain', async () => {
    await runIn(audited('--', 'true'))
    const script = 'for i in $(seq 40); do "$@" & done; wait'
    await runWords(['sh', '-c', script, 'sh', ...cliWords(audited('--', 'true'))])
    await expectWhole(41)
  })

  test('a line longer than any buffer is written whole and followed', async () => {
    const long = 'x'.repeat(100_000)
    await runIn(audited('--', 'true'))
    for (const word of [long, 'short']) expect((await runIn(audited('--', 'true', word), withoutNode)).status).toBe(0)
    expect(lines()[1]?.['argv']).toEqual(['true', long])
    await expectWhole(3)
  })

  test('a half line of a writer that died stays, and the next line stands by itself', async () => {
    await runIn(audited('--', 'true'))
    writeFileSync(logFile(), `${readFileSync(logFile(), 'utf8')}{"half`)
    expect((await runIn(audited('--', 'true'), withoutNode)).status).toBe(0)
    const { lines: count, problems } = await verifyAudit(logFile())
    expect([count, problems.length]).toEqual([3, 1])
  })

  test('waits for a holder of the lock', async () => {
    const touch = audited('--rw', '.', '--', 'touch', 'ran')
    await runIn(touch)
    rmSync(join(site.current.work, 'ran'))
    const held = tryLock(logFile())
    expect((await runIn(touch, withoutNode)).status, 'the client leaves it to node').toBe(99)
    const child = execa(program(), touch, callIn(site.current, {}))
    // The program that waits for the lock of node's open file.
    const waits = () =>
      descendantsOf(child.pid ?? 0).some((pid) => /\0lock\0\d{4}/.test(readOr(`/proc/${pid}/cmdline`)))
    await until('the wait', () => waits() || child.exitCode !== null || undefined)
    expect([lines().length, existsSync(join(site.current.work, 'ran'))]).toEqual([1, false])
    held?.release()
    expect((await child).exitCode).toBe(0)
    await expectWhole(2)
  })

  test('whose result is all that is left, where its line cannot be written, is told whole', async () => {
    await runIn(audited('--', 'true', 'x'.repeat(100_000)))
    const script = 'echo out; rm -f go; touch ready; until [ -e go ]; do sleep 0.01; done'
    const words = audited('--json', '--rw', '.', '--', 'sh', '-c', script)
    const [ready, go] = ['ready', 'go'].map((name) => join(site.current.work, name)) as [string, string]
    for (const way of ['by node', 'by the client']) {
      const child = execa(program(), words, callIn(site.current, {}))
      await until('the command', () => existsSync(ready) || undefined)
      rmSync(ready)
      await execa('prlimit', ['--pid', `${child.pid}`, `--fsize=${statSync(logFile()).size}`])
      writeFileSync(go, '')
      const { exitCode: status, stdout } = await child
      const { stdout: said, reason, exitCode, error } = JSON.parse(Buffer.from(stdout).toString())
      expect([way, status, said, reason, exitCode, error?.code]).toEqual([
        way,
        125,
        'out\n',
        'exit',
        0,
        'OUTPUT_FAILED',
      ])
      expect(error.message).toMatch(/logs\/audit: the run is over, and its line was not written: EFBIG/)
      await expectWhole(1)
    }
  })

  const replaced = {
    'a link': () => symlinkSync(join(site.current.work, 'elsewhere'), logFile()),
    'a directory': () => mkdirSync(logFile()),
    'a FIFO': () => execa('mkfifo', [logFile()]),
    'in a directory that is gone': () => rmSync(join(site.current.work, 'logs'), { recursive: true }),
  }
  test.each(Object.entries(replaced))('does not happen when its log is %s', async (_, replace) => {
    const words = audited('--rw', '.', '--', 'touch', 'ran')
    await runIn(words)
    rmSync(join(site.current.work, 'ran'))
    rmSync(logFile())
    await replace()
    const { status, stderr } = await runIn(words)
    expect([status, stderr.toString()]).toEqual([125, expect.stringMatching(/--audit \S*logs\/audit: /)])
    expect(existsSync(join(site.current.work, 'ran'))).toBe(false)
    expect(existsSync(join(site.current.work, 'elsewhere'))).toBe(false)
  })

  /** Each leaves its mark where it works; what a run of an earlier version locked is among them. */
  const ATTACKS = ['audit', 'audit.lock'].flatMap((name) => [
    `echo forged >> logs/${name}`,
    `rm logs/${name}`,
    `mv logs/${name} logs/away`,
    `mkdir logs/new && mv -T logs/new logs/${name}`,
    `ln -sf /etc/passwd logs/${name}`,
    `chmod 777 logs/${name}`,
    `mv logs moved`,
  ])

  test.each(['by node', 'by the client'])(
    'cannot change log and lock from inside, %s; without --audit it can',
    async (way) => {
      const script = ATTACKS.map((attack, at) => `( ${attack} ) 2>/dev/null && echo ${at}`).join('; ')
      const words = ['--rw', '.', '-c', `${script}; ln -s no-such-boot/1/1:1 logs/audit.lock.0; true`]
      if (way !== 'by node') await runIn(audited(...words))
      const { status, stdout } = await runIn(audited(...words), way === 'by node' ? {} : withoutNode)
      expect([status, stdout.toString()]).toEqual([0, ''])
      await expectWhole(way === 'by node' ? 1 : 2)
      expect((await runIn(words)).stdout.toString().split('\n').length, 'the control').toBeGreaterThan(3)
    },
  )

  test('cannot be kept from being recorded by one that sees the lock', async () => {
    await runIn(audited('--', 'true'))
    const words = ['--ro', '.', '--', 'flock', 'logs/audit.lock', 'echo', 'held']
    expect((await runIn(words)).stdout.toString()).toBe('')
    chmodSync(`${logFile()}.lock`, 0o644)
    expect((await runIn(words)).stdout.toString(), 'the control').toBe('held\n')
  })

  testWith(
    'root',
    'finds room for its line on a disk that it has filled, and does not begin on a full one',
    async () => {
      const full = 'mount -t tmpfs -o size=256k none logs && mkdir logs/zone && exec "$@"'
      const onSmallDisk = (script: string) =>
        runWords(['unshare', '-m', 'sh', '-c', full, 'sh', 'sh', '-c', script, 'sh', ...cliWords([])])
      const fill = 'head -c 1m /dev/zero > zone/fill'
      const { stdout } = await onSmallDisk(
        `cd logs; "$@" --audit audit --rw zone -c '${fill}; ${fill}2; true'; df --output=avail . | tail -1; wc -l < audit`,
      )
      expect(stdout.toString().split(/\s+/)).toEqual(['', '0', '1', ''])
      const refused = await onSmallDisk(`cd logs; ${fill}; "$@" --audit audit --rw zone -- touch zone/ran; ls zone`)
      expect(refused.stderr.toString()).toMatch(/SETUP_FAILED: --audit audit: no room for a line .*: No space left/)
      expect(refused.stdout.toString()).toBe('fill\n')
    },
  )

  test('is no refusal where what its plan was made from is gone at its end', async () => {
    const extra = join(site.current.home, 'extra')
    mkdirSync(extra)
    const words = audited('--json', '--rw', '.', '--ro', '../extra', '-c')
    await settle(extra)
    await runIn([...words, 'true'])
    const run = runIn([...words, 'touch ready; until [ -e go ]; do sleep 0.01; done; echo EROFS >&2; exit 1'])
    await until('the command', () => existsSync(join(site.current.work, 'ready')) || undefined)
    rmSync(extra, { recursive: true })
    writeFileSync(join(site.current.work, 'go'), '')
    const { status, stdout } = await run
    expect([status, JSON.parse(stdout.toString()).error.code]).toEqual([137, 'BACKEND_FAILED'])
    expect(lines().map(({ decision, reason }) => [decision, reason])).toEqual([
      ['run', 'exit'],
      ['run', 'lost'],
    ])
  })

  test('is in the log once when its result cannot be written', async () => {
    const words = audited('--json', '--', 'true')
    await runIn(words)
    await runWords(['sh', '-c', 'exec "$0" "$@" > /dev/full', ...cliWords(words)])
    await expectWhole(2)
  })
})
