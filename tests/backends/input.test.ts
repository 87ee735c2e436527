import { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { streamInput } from '../../src/backends/input.ts'

describe('an input', () => {
  test('of a stream gives the last piece again, for a sandbox that comes after one that has refused', async () => {
    const input = streamInput(Readable.from(['a', 'b']))
    const first = await input.piece(0)
    expect([await input.piece(0), await input.piece(1)]).toEqual([first, Buffer.from('b')])
  })
})
