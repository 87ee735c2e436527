/**
 * Random bits for unique names.
 * Edge: the kernel's random numbers.
 */
import { randomBytes } from 'node:crypto'
import { closeSync, openSync, readSync } from 'node:fs'

/** Two lower-case digits a byte. From the kernel's own device, because it takes node 3 ms to load its cryptography. */
export function randomHex(count: number, device = '/dev/urandom'): string {
  return (bytesOf(device, count) ?? randomBytes(count)).toString('hex')
}

/** @returns undefined when the device is missing, or gives fewer bytes */
function bytesOf(device: string, count: number): Buffer | undefined {
  try {
    const fd = openSync(device, 'r')
    try {
      const bytes = Buffer.alloc(count)
      return readSync(fd, bytes) === count ? bytes : undefined
    } finally {
      closeSync(fd)
    }
  } catch {
    return undefined
  }
}
