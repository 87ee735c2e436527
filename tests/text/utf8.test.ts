import { expect, it } from 'vitest'
import { utf8In } from '../../src/text/utf8.ts'

it('reads UTF-8 as it is, and nothing else', () => {
  expect(utf8In(Buffer.from('\uFEFFgrün'))).toBe('\uFEFFgrün')
  expect(utf8In(Buffer.from([0x67, 0xfc]))).toBeUndefined()
})
