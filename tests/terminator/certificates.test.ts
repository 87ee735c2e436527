import { X509Certificate } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { hostCertificate, newAuthority, newKeys, type Validity } from '../../src/terminator/certificates.ts'

const HOUR_MS = 3_600_000
const validity = (serial = 0): Validity => {
  const now = Date.now()
  return { from: new Date(now - HOUR_MS), until: new Date(now + HOUR_MS), serial: Buffer.alloc(16, serial) }
}

describe('the certificates of a run', () => {
  const authority = newAuthority('run 1', validity())
  const ca = new X509Certificate(authority.certificate)
  const { publicKey } = newKeys()
  const certificateOf = (host: string, serial = 1) =>
    new X509Certificate(hostCertificate(host, publicKey, authority, validity(serial)))

  test('of the authority signs, and is signed by itself', () => {
    expect([ca.ca, ca.subject, ca.issuer, ca.verify(authority.publicKey)]).toEqual([true, 'CN=run 1', 'CN=run 1', true])
  })

  test.each(['a.example', `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.example`, 'xn--bcher-kva.example'])(
    'of a host is signed by the authority, and is for that name alone: %s',
    (host) => {
      const leaf = certificateOf(host)
      expect([leaf.ca, leaf.verify(authority.publicKey), leaf.checkIssued(ca)]).toEqual([false, true, true])
      expect(leaf.subjectAltName).toBe(`DNS:${host}`)
      expect([leaf.checkHost(host), leaf.checkHost(`x.${host}`), leaf.checkHost('llm-do')]).toEqual([
        host,
        undefined,
        undefined,
      ])
      expect(leaf.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1'])
    },
  )

  test('of another authority does not verify', () => {
    expect(certificateOf('a.example').verify(newAuthority('run 1', validity()).publicKey)).toBe(false)
  })

  test.each([0, 0x7f, 0x80, 0xff])('have a positive number, whatever chance gives: %i', (byte) => {
    expect(certificateOf('a.example', byte).serialNumber).toBe(
      `01${Buffer.alloc(16, byte).toString('hex').toUpperCase()}`,
    )
  })

  test('hold from an hour before, as readers read it', () => {
    const { validFrom, validTo } = certificateOf('a.example')
    expect(new Date(validTo).getTime() - new Date(validFrom).getTime()).toBe(2 * HOUR_MS)
  })
})
