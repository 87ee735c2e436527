import { describe, expect, test } from 'vitest'
import { classify } from '../../src/report/classify.ts'
import { JSON_FORMS, printJson } from '../../src/report/json.ts'
import { templateRecords } from '../../src/report/result-template.ts'
import { capture, outcome, plan } from './fixtures.ts'

/** As native/client/result-template.c fills it in, for one run. */
const VALUES: Readonly<Record<string, unknown>> = {
  ...{ ok: false, 'exit-code': 3, stdout: 'out "\n', stderr: 'err', duration: 12.5, 'whole-duration': 13, setup: 5.9 },
  ...{ command: ['sh', '-c', 'x'], 'cpu-time': 1, 'peak-memory': 2, 'peak-pids': 3, 'read-bytes': 4, 'write-bytes': 5 },
  ...{ signal: null, reason: 'exit', message: '', denials: [], hints: [], 'timed-out': false },
}

/** What is filled in together with its key. */
const KEYS: Readonly<Record<string, string>> = {
  'peak-pids': 'peakPids',
  'read-bytes': 'readBytes',
  'write-bytes': 'writeBytes',
}

const USED = { cpuMs: 1, peakMemory: 2, peakPids: 3, readBytes: 4, writeBytes: 5 }

function valueAt(slot: string): string {
  if (slot === 'end') return '\n'
  if (slot === 'error') return ''
  const value = JSON.stringify(VALUES[slot])
  return slot in KEYS ? `,"${KEYS[slot]}":${value}` : value
}

const filled = (records: ReturnType<typeof templateRecords>): string =>
  records
    .slice(1)
    .map(([, text, slot = '']) => `${text}${valueAt(`${slot}`)}`)
    .join('')

describe('a prepared answer', () => {
  test.each(JSON_FORMS)('is the result of a run as soon as its slots are filled in: %s', (form) => {
    const run = outcome({ exitCode: 3, stdout: capture('out "\n'), stderr: capture('err'), usage: USED })
    expect(filled(templateRecords(plan(), form))).toBe(printJson(classify(plan(), run, ['sh', '-c', 'x']), form))
  })

  test('is not misled by a profile that is named like a slot', () => {
    const odd = plan({ profile: '"\\u0000hole stdout"' })
    const run = outcome({ exitCode: 3, stdout: capture('out "\n'), stderr: capture('err'), usage: USED })
    expect(filled(templateRecords(odd, 'native'))).toBe(printJson(classify(odd, run, ['sh', '-c', 'x'])))
  })

  test.each([
    [4096, 4096],
    [0, 0],
    [undefined, 'all'],
  ])('says how much of each stream is kept: a cap of %j is %j', (output, kept) => {
    const { limits } = plan()
    const [first] = templateRecords(
      plan({ limits: { ...limits, ...(output === undefined ? {} : { output }) } }),
      'shell',
    )
    expect(first).toEqual(['capture', kept])
  })
})
