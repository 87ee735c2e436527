/** The launch file as it is written; native/contract.yaml has its verbs for both languages. */
import { describe, expect, test } from 'vitest'
import { type LaunchRecord, printLaunchFile, writeLaunchFile } from '../../../src/backends/namespace/launch-file.ts'

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
