import { describe, expect, test } from 'vitest'
import { commandBlock, FRAME, FrameReader, writeFrame } from '../../src/pool/frame.ts'

describe('frames', () => {
  test.each([1, 3, 7, 8, 9, 1000])('are found again in a stream that comes %d bytes at a time', (step) => {
    const sent = [Buffer.from('one'), Buffer.alloc(0), Buffer.alloc(300, 7)]
    const stream = Buffer.concat(sent.map((bytes) => writeFrame(FRAME.output, bytes)))
    const reader = new FrameReader()
    const pieces = Array.from({ length: Math.ceil(stream.length / step) }, (_, n) =>
      stream.subarray(n * step, (n + 1) * step),
    )
    const frames = pieces.flatMap((piece) => reader.push(piece) ?? [])
    expect(frames.map(({ kind, bytes }) => [kind, bytes])).toEqual(sent.map((bytes) => [FRAME.output, bytes]))
  })

  test('of a size that no sandbox sends are refused', () => {
    const header = Buffer.from([FRAME.output, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f])
    expect(new FrameReader().push(header)).toBeUndefined()
  })
})

test('a command and its environment become counted words, each ended by NUL', () => {
  const block = commandBlock(['sh', '', Buffer.from([0xff])], { A: '1', B: 'x=y' })
  expect(Buffer.from(block).toString('latin1')).toBe('3\x002\x00sh\x00\x00\xff\x00A=1\x00B=x=y\x00')
})
