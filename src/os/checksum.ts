/** A checksum that is neither secret nor proof: native/lib/launch-cache.c computes the same. Pure. */

const OFFSET_BASIS = 0xcbf29ce484222325n
const PRIME = 0x100000001b3n

/** FNV-1a, 64 bits, 16 hexadecimal digits: names files and finds damage. */
export function fnv1a64(bytes: Uint8Array): string {
  const hash = bytes.reduce((value, byte) => BigInt.asUintN(64, (value ^ BigInt(byte)) * PRIME), OFFSET_BASIS)
  return hash.toString(16).padStart(16, '0')
}
