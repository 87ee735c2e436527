import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { dirSync } from 'tmp-promise'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { tryLock } from '../../src/os/file-lock.ts'
import { openAuditLog, verifyAudit } from '../../src/report/audit-file.ts'
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

const append = async (word: string): Promise<void> => {
  const log = await openAuditLog(file, [word])
  await log.append(entry(word))
}

test('a line that was changed, removed or added is named', async () => {
  for (const word of ['a', 'b', 'c']) await append(word)
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
  await append('a')
  writeFileSync(file, `${readFileSync(file, 'utf8')}{"schema":1,"ti`)
  await append('b')
  const verdict = await verifyAudit(file)
  expect([verdict.lines, verdict.problems.length]).toEqual([3, 1])
  expect(verdict.problems[0]).toMatch(/^line 2: is not a JSON object/)
})

describe('the lock', () => {
  test('is waited for, by however many come at once', async () => {
    const held = tryLock(file)
    const runs = Array.from({ length: 20 }, (_, run) => append(`run ${run}`))
    expect(statSync(file, { throwIfNoEntry: false })?.size ?? 0).toBe(0)
    held?.release()
    await Promise.all(runs)
    expect(await verifyAudit(file)).toMatchObject({ lines: 20, problems: [] })
  })

  test('is not needed by name after the run, nor is the log', async () => {
    const log = await openAuditLog(file, ['a'])
    for (const name of [file, `${file}.lock`]) {
      renameSync(name, `${name}.old`)
      mkdirSync(name)
    }
    await log.append(entry('a'))
    expect(await verifyAudit(`${file}.old`)).toMatchObject({ lines: 1, problems: [] })
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
