/** The audit log as the client writes it: the line that node would write, in the same chain, under the same lock. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { execa } from 'execa'
import { beforeEach, expect, test } from 'vitest'
import { ownIdentity } from '../../src/os/process-identity.ts'
import { verifyAudit } from '../../src/report/audit-file.ts'
import { describeWith } from '../support/needs.ts'
import { cliWords, runIn, runWords, settle, site, withoutNode } from './client.ts'

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
    expect(readdirSync(join(site.current.work, 'logs'))).toEqual(['audit'])
    expect(statSync(logFile()).mode & 0o777).toBe(0o600)
  })

  test.each([
    [['--', 'sh', '-c', 'sleep 9 & kill -SEGV $$'], 'signal'],
    [['--', 'no-such-\u001bprogram'], 'setup'],
    [['--json', '--', 'printf', '\\377'], 'exit'],
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

  test('waits for a holder of the lock that lives, and takes that of a dead one by node', async () => {
    const touch = audited('--rw', '.', '--', 'touch', 'ran')
    await runIn(touch)
    rmSync(join(site.current.work, 'ran'))
    symlinkSync(ownIdentity(), `${logFile()}.lock.0`)
    const waiting = runIn(touch)
    await setTimeout(300)
    expect([lines().length, existsSync(join(site.current.work, 'ran'))]).toEqual([1, false])
    rmSync(`${logFile()}.lock.0`)
    expect((await waiting).status).toBe(0)
    symlinkSync(ownIdentity().replace(/\d+:\d+$/, '1:1'), `${logFile()}.lock.0`)
    expect((await runIn(audited('--', 'true'))).status).toBe(0)
    await expectWhole(3)
    expect(existsSync(`${logFile()}.lock.0`)).toBe(false)
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

  test('cannot change its log from inside; without --audit it can', async () => {
    const words = ['--rw', '.', '--', 'sh', '-c', 'echo forged >> logs/audit']
    await runIn(audited(...words))
    expect((await runIn(audited(...words))).status).not.toBe(0)
    await expectWhole(2)
    expect((await runIn(words)).status).toBe(0)
    expect(readFileSync(logFile(), 'utf8')).toContain('forged')
  })

  test('is in the log once when its result cannot be written', async () => {
    const words = audited('--json', '--', 'true')
    await runIn(words)
    await runWords(['sh', '-c', 'exec "$0" "$@" > /dev/full', ...cliWords(words)])
    await expectWhole(2)
  })
})
