import { describe, expect, test } from 'vitest'
import { decodeOutput } from '../../src/report/decode-output.ts'
import { capture } from './fixtures.ts'

const euro = Buffer.from('€')

describe('output is text', () => {
  test.each(['', 'plain', 'a\u0000b\u001b[31m', '\ufeffbom', 'a\u2028b', '€😀'])('%j arrives unchanged', (text) => {
    expect(decodeOutput(capture(text), capture())).toMatchObject({ stdout: text, encoding: 'utf8' })
  })

  test('also where the cap cut through a character: its remains are counted as dropped', () => {
    const head = Buffer.concat([Buffer.from('a'), euro.subarray(0, 2)])
    const tail = Buffer.concat([euro.subarray(2), Buffer.from('z')])
    const output = decodeOutput(capture(head, { tail, bytes: 105 }), capture())
    expect(output).toEqual({ stdout: 'az', stderr: '', encoding: 'utf8', truncated: { stdout: 103, stderr: 0 } })
  })

  test('and a character whose halves meet because nothing was dropped stays whole', () => {
    const output = decodeOutput(capture(euro.subarray(0, 1), { tail: euro.subarray(1), bytes: 3 }), capture())
    expect(output).toMatchObject({ stdout: '€', truncated: { stdout: 0 } })
  })
})

describe('output that is not UTF-8 makes both streams base64', () => {
  test.each([
    ['a single stray byte', Buffer.from([0xff])],
    ['a complete stream that ends inside a character', euro.subarray(0, 2)],
    ['an overlong form', Buffer.from([0xc0, 0xaf])],
    ['a surrogate', Buffer.from([0xed, 0xa0, 0x80])],
  ])('%s', (_, bytes) => {
    const output = decodeOutput(capture(bytes), capture('text'))
    expect(output.encoding).toBe('base64')
    expect(Buffer.from(output.stdout, 'base64')).toEqual(bytes)
    expect(Buffer.from(output.stderr, 'base64').toString()).toBe('text')
  })

  test('and every kept byte is there', () => {
    const head = Buffer.from([0xff, 0xe2])
    const output = decodeOutput(capture(head, { tail: Buffer.from([0x82]), bytes: 10 }), capture())
    expect([output.stdout, output.truncated.stdout]).toEqual([Buffer.from([0xff, 0xe2, 0x82]).toString('base64'), 7])
  })
})
