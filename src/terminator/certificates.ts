/**
 * The certificates of one run: an authority, and one for each host that it speaks for (RFC 5280). node signs, and does not write
 * certificates; of DER (X.690) that takes one function a type. Nothing is read here, so nothing of it can be misread.
 */
import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'

/** Of ASN.1, as far as certificates have them. */
const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bits: 0x03,
  octets: 0x04,
  oid: 0x06,
  utf8: 0x0c,
  time: 0x18,
  sequence: 0x30,
  set: 0x31,
}
/** Tags that stand for the place in a structure, and for what is there. */
const placed = (number: number): number => 0xa0 + number
const NAME_OF_HOST = 0x82
const KEY_IDENTIFIER = 0x80

const OID = {
  ecdsaWithSha256: '1.2.840.10045.4.3.2',
  commonName: '2.5.4.3',
  subjectKeyIdentifier: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyIdentifier: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
  serverAuthentication: '1.3.6.1.5.5.7.3.1',
} as const

function lengthOf(size: number): readonly number[] {
  if (size < 0x80) return [size]
  return size < 0x100 ? [0x81, size] : [0x82, size >> 8, size & 0xff]
}

function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts)
  return Buffer.concat([Buffer.from([tag, ...lengthOf(content.length)]), content])
}

/** Seven bits a byte, the highest bit set but in the last one. */
function base128(number: number): readonly number[] {
  const bytes = [number & 0x7f]
  for (let left = number >>> 7; left > 0; left >>>= 7) bytes.unshift((left & 0x7f) | 0x80)
  return bytes
}

function oid(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split('.').map(Number)
  return der(TAG.oid, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]))
}

const sequence = (...parts: readonly Uint8Array[]): Buffer => der(TAG.sequence, ...parts)
/** GeneralizedTime is right only from 2050 on, but every reader takes it, and it needs no second form (RFC 5280, 4.1.2.5). */
const time = (date: Date): Buffer => der(TAG.time, Buffer.from(date.toISOString().replace(/[-:T]|\.\d+/g, '')))
const named = (name: string): Buffer =>
  sequence(der(TAG.set, sequence(oid(OID.commonName), der(TAG.utf8, Buffer.from(name)))))

const TRUE = der(TAG.boolean, Buffer.from([0xff]))
const extension = (id: string, isCritical: boolean, value: Uint8Array): Buffer =>
  sequence(oid(id), ...(isCritical ? [TRUE] : []), der(TAG.octets, value))

interface Content {
  readonly subject: string
  readonly issuer: string
  readonly publicKey: KeyObject
  readonly extensions: readonly Uint8Array[]
}

export interface Validity {
  readonly from: Date
  readonly until: Date
  /** 16 bytes by chance. */
  readonly serial: Uint8Array
}

const ALGORITHM = sequence(oid(OID.ecdsaWithSha256))
const VERSION_3 = der(placed(0), der(TAG.integer, Buffer.from([2])))

function certificate({ subject, issuer, publicKey, extensions }: Content, validity: Validity, key: KeyObject): string {
  // A leading 1 keeps the number positive, and long enough to be in its shortest form.
  const serial = der(TAG.integer, Buffer.from([1]), validity.serial)
  const content = sequence(
    VERSION_3,
    serial,
    ALGORITHM,
    named(issuer),
    sequence(time(validity.from), time(validity.until)),
    named(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(placed(3), sequence(...extensions)),
  )
  const signature = der(TAG.bits, Buffer.from([0]), sign('sha256', content, key))
  return pem(sequence(content, ALGORITHM, signature))
}

const pem = (bytes: Buffer): string =>
  `-----BEGIN CERTIFICATE-----\n${bytes.toString('base64').replace(/.{1,64}/g, '$&\n')}-----END CERTIFICATE-----\n`

/** Bits from the highest one on: digitalSignature 0, keyCertSign 5. */
const keyUsage = (unused: number, bits: number): Buffer =>
  extension(OID.keyUsage, true, der(TAG.bits, Buffer.from([unused, bits])))
const keyIdOf = (publicKey: KeyObject): Buffer =>
  createHash('sha1')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest()

export interface KeyPair {
  readonly publicKey: KeyObject
  readonly privateKey: KeyObject
}

export const newKeys = (): KeyPair => generateKeyPairSync('ec', { namedCurve: 'P-256' })

export interface Authority extends KeyPair {
  readonly name: string
  /** PEM. */
  readonly certificate: string
}

/** It signs certificates of hosts and no further authority's. */
export function newAuthority(name: string, validity: Validity): Authority {
  const keys = newKeys()
  const extensions = [
    extension(OID.basicConstraints, true, sequence(TRUE, der(TAG.integer, Buffer.from([0])))),
    keyUsage(2, 0x04),
    extension(OID.subjectKeyIdentifier, false, der(TAG.octets, keyIdOf(keys.publicKey))),
  ]
  const content = { subject: name, issuer: name, publicKey: keys.publicKey, extensions }
  return { ...keys, name, certificate: certificate(content, validity, keys.privateKey) }
}

/** For one name and nothing below it. */
export function hostCertificate(host: string, publicKey: KeyObject, authority: Authority, validity: Validity): string {
  const extensions = [
    extension(OID.basicConstraints, true, sequence()),
    keyUsage(7, 0x80),
    extension(OID.extendedKeyUsage, false, sequence(oid(OID.serverAuthentication))),
    extension(OID.subjectAltName, false, sequence(der(NAME_OF_HOST, Buffer.from(host)))),
    extension(OID.authorityKeyIdentifier, false, sequence(der(KEY_IDENTIFIER, keyIdOf(authority.publicKey)))),
  ]
  // The name is in subjectAltName alone: a common name holds 64 characters, and clients ignore it today.
  const content = { subject: 'llm-do', issuer: authority.name, publicKey, extensions }
  return certificate(content, validity, authority.privateKey)
}
