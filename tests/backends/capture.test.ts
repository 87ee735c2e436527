import { describe, expect, test } from 'vitest'
import { HeadTail } from '../../src/backends/capture.ts'

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1')

function captured(cap: number | null, chunks: readonly string[]): readonly [string, string, number] {
  const kept = new HeadTail(cap)
  for (const chunk of chunks) kept.push(Buffer.from(chunk, 'latin1'))
  const { head, tail, bytes } = kept.capture()
  return [text(head), text(tail), bytes]
}

describe('the capture of a stream', () => {
  test.each<readonly [string, number | null, readonly string[], readonly [string, string, number]]>([
    ['nothing printed', 10, [], ['', '', 0]],
    ['less than the cap in one piece', 10, ['abc'], ['abc', '', 3]],
    ['exactly the cap', 10, ['abcde', 'fghij'], ['abcde', 'fghij', 10]],
    ['one byte more than the cap', 10, ['abcdefghijk'], ['abcde', 'ghijk', 11]],
    ['a chunk longer than the tail', 4, ['ab', '0123456789'], ['ab', '89', 12]],
    ['many chunks around the end of the ring', 6, ['abc', '12', '34', '5', '6789'], ['abc', '789', 12]],
    ['an odd cap', 5, ['abcdefgh'], ['abc', 'gh', 8]],
    ['a cap of one byte', 1, ['abc'], ['a', '', 3]],
    ['a cap of nothing', 0, ['abc'], ['', '', 3]],
    ['no cap', null, ['abc', 'def'], ['abcdef', '', 6]],
  ])('keeps head and tail and counts every byte: %s', (_case, cap, chunks, expected) => {
    expect(captured(cap, chunks)).toEqual(expected)
  })

  test('does not keep the buffer it was given', () => {
    const kept = new HeadTail(10)
    const chunk = Buffer.from('abc')
    kept.push(chunk)
    chunk.fill(0)
    expect(text(kept.capture().head)).toBe('abc')
  })
})
