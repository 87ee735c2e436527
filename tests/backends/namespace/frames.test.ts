import { describe, expect, test } from 'vitest'
import { commandBlock, FrameReader, writeFrame } from '../../../src/backends/namespace/frames.ts'
import { FRAME } from '../../../src/contract.ts'

interface Piece {
  readonly kind: number
  readonly text: string
}

function readInSteps(stream: Buffer, step: number): readonly Piece[] {
  const reader = new FrameReader()
  const pieces: Piece[] = []
  // One buffer for all input, like a socket with a buffer.
  const buffer = Buffer.alloc(step)
  for (let at = 0; at < stream.length; at += step) {
    const size = stream.copy(buffer, 0, at, at + step)
    const isWhole = reader.push(buffer.subarray(0, size), (kind, bytes) =>
      pieces.push({ kind, text: Buffer.from(bytes).toString() }),
    )
    expect(isWhole).toBe(true)
  }
  return pieces
}

const printed = (pieces: readonly Piece[], wanted: number): string =>
  pieces
    .filter(({ kind }) => kind === wanted)
    .map(({ text }) => text)
    .join('')

describe('frames', () => {
  test.each([1, 3, 7, 8, 9, 1000])('are found again in a stream that comes %d bytes at a time', (step) => {
    const { taken, output, errors, status } = FRAME
    const sent = [
      [taken, ''],
      [output, 'one'],
      [errors, 'e'.repeat(300)],
      [output, ''],
      [output, ' two'],
      [status, '{"cause":"exit"}'],
    ] as const
    const pieces = readInSteps(Buffer.concat(sent.map(([kind, text]) => writeFrame(kind, Buffer.from(text)))), step)
    expect(printed(pieces, output)).toBe('one two')
    expect(printed(pieces, errors)).toBe('e'.repeat(300))
    // All but what a command prints comes whole.
    const others = pieces.filter(({ kind }) => kind !== output && kind !== errors)
    expect(others).toEqual([
      { kind: taken, text: '' },
      { kind: status, text: '{"cause":"exit"}' },
    ])
  })

  test('of a size that no sandbox sends are refused', () => {
    const header = Buffer.from([FRAME.output, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f])
    expect(new FrameReader().push(header, () => undefined)).toBe(false)
  })
})

test.each([
  ['words', ['sh', ''], '2\x002\x0063\x00sh\x00\x00A=1\x00B=x=y\x00'],
  ['bytes', ['sh', Buffer.from([0xff])], '2\x002\x0063\x00sh\x00\xff\x00A=1\x00B=x=y\x00'],
])('a command of %s and its environment become counted words, each ended by NUL', (_case, command, expected) => {
  expect(Buffer.from(commandBlock({ command, env: { A: '1', B: 'x=y' }, umask: 0o077 })).toString('latin1')).toBe(
    expected,
  )
})
