/** Both ends of the launch file: what is written here is what the native chain reads. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  type LaunchRecord,
  printLaunchFile,
  VERBS,
  writeLaunchFile,
} from '../../../src/backends/namespace/launch-file.ts'

const NATIVE = join(import.meta.dirname, '../../../native')
const source = readFileSync(join(NATIVE, 'launchfile.c'), 'utf8')
const header = readFileSync(join(NATIVE, 'launchfile.h'), 'utf8')

/** `[V_TMPFS] = {"tmpfs", 4}` */
const nativeTable = Object.fromEntries(
  [...source.matchAll(/\[V_\w+\] = \{"([a-z-]+)", (\d+)\}/g)].map(([, verb = '', words]) => [verb, Number(words)]),
)

describe('writer and reader', () => {
  test('know the same verbs with the same number of words', () => {
    expect({ ...VERBS, end: 0 }).toEqual(nativeTable)
  })

  test('have room for the words of the longest record', () => {
    const room = Number(/#define RECORD_MAX_WORDS (\d+)/.exec(header)?.[1])
    expect(room).toBeGreaterThanOrEqual(Math.max(...Object.values(VERBS)))
  })

  test('mean the same version of the file', () => {
    const magic = /#define LAUNCHFILE_MAGIC "([^"]+)"/.exec(header)?.[1]
    expect(Buffer.from(writeLaunchFile([])).toString()).toBe(`${magic}\0end\0`)
  })
})

describe('a launch file', () => {
  test('is words ended by NUL, whatever is in them', () => {
    const records: readonly LaunchRecord[] = [
      ['symlink', '/bin', 'usr/bin'],
      ['file', '/etc/a', '644', 'two\nlines and "quotes"'],
      ['tmpfs', '/tmp', 100, 10, '1777'],
    ]
    const bytes = writeLaunchFile(records)
    expect(Buffer.from(bytes).toString().split('\0')).toEqual([
      'llm-do-launch-2',
      ...records.flat().map(String),
      'end',
      '',
    ])
    expect(printLaunchFile(bytes)).toBe(
      'symlink /bin usr/bin\nfile /etc/a 644 "two\\nlines and \\"quotes\\""\ntmpfs /tmp 100 10 1777\n',
    )
  })

  test.each<[string, LaunchRecord, string]>([
    ['a word too few', ['bind', '/usr'], 'bind takes 2 words'],
    ['a word too many', ['net', 'none', 'more'], 'net takes 1 words'],
    ['a NUL in a word', ['bind', '/usr', '/a\0b'], 'contains NUL'],
  ])('is not written with %s', (_title, record, reason) => {
    expect(() => writeLaunchFile([record])).toThrow(reason)
  })

  test('prints an empty word so that it can be seen', () => {
    expect(printLaunchFile(writeLaunchFile([['file', '/etc/empty', '644', '']]))).toBe('file /etc/empty 644 ""\n')
  })
})
