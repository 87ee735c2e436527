import { describe, expect, test } from 'vitest'
import { Output, Outputs } from '../../src/mcp/outputs.ts'

const MIB = 1 << 20

function outputOf(...chunks: readonly Uint8Array[]): Output {
  const output = new Output()
  for (const chunk of chunks) output.stdout.push(chunk)
  return output
}

const codeOf = (read: () => unknown): unknown => {
  try {
    return read()
  } catch (error) {
    return (error as { code: string }).code
  }
}

describe('an output', () => {
  test('that is short is shown whole, and not kept', () => {
    const output = outputOf(Buffer.from('a'), Buffer.from('b'))
    expect(output.show('stdout')).toEqual({ text: 'ab', isLossy: false, bytes: 2 })
    expect(output.kept).toBe(0)
  })

  test('is cut between characters, and its pieces are whole characters', () => {
    const text = '\u{1f600}a'.repeat(20_000)
    const outputs = new Outputs()
    const output = outputOf(Buffer.from(text))
    outputs.add(output)
    const { gap = { from: 0, to: 0 }, ...shown } = output.show('stdout')
    expect([shown.isLossy, shown.bytes]).toEqual([false, Buffer.byteLength(text)])
    expect(shown.text).toContain(`\n[... ${gap.to - gap.from} bytes left out: read_output {"id":"${output.id}"`)
    const pieces: string[] = []
    for (let offset: number | undefined = 0; offset !== undefined; ) {
      const piece = outputs.read({ id: output.id, stream: 'stdout', offset, length: 1001 })
      pieces.push(piece.text)
      offset = piece.next
    }
    expect(pieces.join('')).toBe(text)
  })

  test('that is no text says so', () => {
    expect(outputOf(Uint8Array.of(0x61, 0xff)).show('stdout')).toMatchObject({ text: 'a\ufffd', isLossy: true })
  })

  test('is kept up to a bound, and what lies behind it is refused', () => {
    const outputs = new Outputs()
    const output = outputOf(...Array.from({ length: 9 }, (_, at) => Buffer.alloc(MIB, `${at}`)))
    outputs.add(output)
    expect(output.kept).toBe(8 * MIB)
    const read = (offset: number) => outputs.read({ id: output.id, stream: 'stdout', offset, length: 10 })
    expect(read(8 * MIB - 10)).toEqual({ text: '7'.repeat(10), isLossy: false, bytes: 9 * MIB, kept: 8 * MIB })
    expect(codeOf(() => read(8 * MIB))).toBe('OUTPUT_NOT_FOUND')
    expect(read(9 * MIB)).toMatchObject({ text: '' })
  })
})

test('the oldest outputs are forgotten when there are too many, and all of them at the end', () => {
  const outputs = new Outputs()
  const all = Array.from({ length: 10 }, () => outputOf(Buffer.alloc(8 * MIB, 'x')))
  for (const output of all) outputs.add(output)
  const read = ({ id }: Output) => codeOf(() => outputs.read({ id, stream: 'stdout', offset: 0, length: 1 }))
  expect(all.map(read).map((found) => typeof found === 'string')).toEqual([true, true, ...Array(8).fill(false)])
  outputs.forget()
  expect(new Set(all.map(read))).toEqual(new Set(['OUTPUT_NOT_FOUND']))
})
