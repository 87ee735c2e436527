import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { dirSync } from 'tmp-promise'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { processTable } from '../../src/os/process-identity.ts'
import { appendAudit, checkAuditFile, verifyAudit } from '../../src/report/audit-file.ts'
import { classify } from '../../src/report/classify.ts'
import { outcome, plan } from './fixtures.ts'

let directory: ReturnType<typeof dirSync>
let file: string
beforeEach(() => {
  directory = dirSync({ unsafeCleanup: true, prefix: 'llm-do-audit-' })
  file = join(directory.name, 'audit.jsonl')
})
afterEach(() => directory.removeCallback())

const entry = (word: string) =>
  ({
    time: '2026-01-02T03:04:05Z',
    result: classify(plan(), outcome(), [word]),
    decision: 'run',
    decidedBy: 'policy',
  }) as const

test('the log is created for its owner only and grows by one line a run', async () => {
  await appendAudit(file, entry('a'))
  await appendAudit(file, entry('b'))
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(await verifyAudit(file)).toMatchObject({ lines: 2, problems: [] })
  expect(readdirSync(directory.name)).toEqual(['audit.jsonl'])
})

test('a line longer than any buffer is followed correctly', async () => {
  await appendAudit(file, entry('x'.repeat(200_000)))
  await appendAudit(file, entry('b'))
  expect(await verifyAudit(file)).toMatchObject({ lines: 2, problems: [] })
})

test('a line that was changed, removed or added is named', async () => {
  for (const word of ['a', 'b', 'c']) await appendAudit(file, entry(word))
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
  const forge = async (forged: readonly string[]) => {
    writeFileSync(file, `${forged.join('\n')}\n`)
    return (await verifyAudit(file)).problems.map((problem) => problem.split(':')[0])
  }
  expect(await forge(lines.map((line, index) => (index === 1 ? line.replace('"b"', '"x"') : line)))).toEqual(['line 3'])
  expect(await forge([lines[0] ?? '', lines[2] ?? ''])).toEqual(['line 2'])
  expect(await forge([...lines.slice(0, 1), 'by hand', ...lines.slice(1)])).toEqual(['line 2', 'line 3'])
})

test('a half line of a writer that died is kept, named, and does not swallow the next one', async () => {
  await appendAudit(file, entry('a'))
  writeFileSync(file, `${readFileSync(file, 'utf8')}{"schema":1,"ti`)
  await appendAudit(file, entry('b'))
  const verdict = await verifyAudit(file)
  expect([verdict.lines, verdict.problems.length]).toEqual([3, 1])
  expect(verdict.problems[0]).toMatch(/^line 2: is not a JSON object/)
})

describe('a log that is no regular file is refused', () => {
  test.each([
    ['a symbolic link', () => symlinkSync(join(directory.name, 'elsewhere'), file)],
    ['a directory', () => mkdirSync(file)],
    ['a FIFO', () => promisify(execFile)('mkfifo', [file])],
  ])('%s', async (_, make) => {
    await make()
    await expect(checkAuditFile(file)).rejects.toMatchObject({
      code: 'POLICY_INVALID',
      message: expect.stringContaining(file),
    })
    await expect(appendAudit(file, entry('a'))).rejects.toMatchObject({ code: 'POLICY_INVALID' })
    expect(readdirSync(directory.name)).toEqual(['audit.jsonl'])
  })

  test('a directory that does not exist', async () => {
    await expect(checkAuditFile(join(directory.name, 'no', 'log'))).rejects.toMatchObject({ code: 'POLICY_INVALID' })
  })

  test.skipIf(process.getuid?.() === 0)('a directory that cannot be written to', async () => {
    chmodSync(directory.name, 0o500)
    await expect(checkAuditFile(file)).rejects.toMatchObject({ code: 'POLICY_INVALID' })
    chmodSync(directory.name, 0o700)
  })
})

describe('the lock', () => {
  /** A program's own identity, as JavaScript. */
  const IDENTITY = `${JSON.stringify(`${processTable()}/`)} + process.pid + ':' +
    require('fs').readFileSync('/proc/self/stat', 'latin1').replace(/.*[)] /s, '').split(' ')[19]`

  /** A process that has just ended, and what its lock looked like. */
  async function deadHolder(): Promise<string> {
    const program = `process.stdout.write(${IDENTITY})`
    return (await promisify(execFile)(process.execPath, ['-e', program])).stdout
  }

  test('of a writer that was killed does not stop the next ones, however many come at once', async () => {
    const dead = await deadHolder()
    symlinkSync(dead, `${file}.lock.0`)
    symlinkSync(dead, `${file}.lock.1`)
    await Promise.all(Array.from({ length: 20 }, (_, run) => appendAudit(file, entry(`run ${run}`))))
    expect(await verifyAudit(file)).toMatchObject({ lines: 20, problems: [] })
    expect(readdirSync(directory.name)).toEqual(['audit.jsonl'])
  })

  test('is not believed when its process id belongs to a younger process', async () => {
    symlinkSync(`${processTable()}/${process.pid}:1`, `${file}.lock.0`)
    await appendAudit(file, entry('a'))
    expect(await verifyAudit(file)).toMatchObject({ lines: 1, problems: [] })
  })

  test('of a living writer is waited for', async () => {
    const program = `const { symlinkSync, unlinkSync, appendFileSync } = require('fs')
      const lock = ${JSON.stringify(`${file}.lock.0`)}
      symlinkSync(${IDENTITY}, lock)
      process.stdout.write('held')
      setTimeout(() => { appendFileSync(${JSON.stringify(file)}, '{"prev":"' + '0'.repeat(64) + '"}\\n'); unlinkSync(lock) }, 300)`
    const holder = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] })
    const ended = once(holder, 'exit')
    await once(holder.stdout, 'data')
    await appendAudit(file, entry('second'))
    await ended
    expect(readFileSync(file, 'utf8').trimEnd().split('\n')[1]).toContain('"second"')
    expect(await verifyAudit(file)).toMatchObject({ lines: 2, problems: [] })
  })
})

test('a log that is not there is no reason to make its directory', async () => {
  const missing = join(directory.name, "it's not there")
  await expect(verifyAudit(missing)).rejects.toMatchObject({
    code: 'POLICY_INVALID',
    message: `${missing}: no such file`,
    hint: expect.stringContaining("it'\\''s not there'"),
  })
})
