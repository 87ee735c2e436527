import { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { bytesInput, type Input, streamInput } from '../../src/backends/input.ts'
import { FRAME_DATA_MAX } from '../../src/contract.ts'

const MORE = FRAME_DATA_MAX + 1

async function sizesOf(input: Input): Promise<readonly number[]> {
  const sizes: number[] = []
  for (let index = 0; sizes.at(-1) !== 0; index += 1) sizes.push((await input.piece(index)).length)
  return sizes
}

describe('an input', () => {
  test.each<[string, Input, readonly number[]]>([
    ['bytes', bytesInput(Buffer.alloc(MORE)), [FRAME_DATA_MAX, 1, 0]],
    ['no bytes', bytesInput(Buffer.alloc(0)), [0]],
    ['a stream', streamInput(Readable.from([Buffer.alloc(MORE), '', 'ab'])), [FRAME_DATA_MAX, 1, 2, 0]],
    ['an empty stream', streamInput(Readable.from([])), [0]],
  ])('of %s comes in pieces, the last one empty', async (_name, input, sizes) => {
    expect(await sizesOf(input)).toEqual(sizes)
  })

  test('of a stream gives the last piece again, for a sandbox that comes after one that has refused', async () => {
    const input = streamInput(Readable.from(['a', 'b']))
    const first = await input.piece(0)
    expect([await input.piece(0), await input.piece(1)]).toEqual([first, Buffer.from('b')])
  })

  test('of a stream that has failed before anybody asked rejects', async () => {
    const stream = new Readable({ read: () => undefined })
    const input = streamInput(stream)
    stream.destroy(new Error('mine'))
    await expect(input.piece(0)).rejects.toThrow('mine')
  })

  test('lets go of its stream', () => {
    const stream = new Readable({ read: () => undefined })
    streamInput(stream).close()
    expect(stream.destroyed).toBe(true)
  })

  test('refuses pieces that are neither text nor bytes', async () => {
    await expect(streamInput(Readable.from([5])).piece(0)).rejects.toThrow(/^stdin: expected pieces of text or bytes/)
  })
})
