/** A sum over bytes that is no secret and no proof: native/lib/launch-cache.c computes the same. Pure. */

const OFFSET_BASIS = 0xcbf29ce484222325n
const PRIME = 0x100000001b3n

/** FNV-1a, 64 bits, 16 hexadecimal digits: names files and finds damage. */
export function sumOf(bytes: Uint8Array): string {
  const sum = bytes.reduce((value, byte) => BigInt.asUintN(64, (value ^ BigInt(byte)) * PRIME), OFFSET_BASIS)
  return sum.toString(16).padStart(16, '0')
}
