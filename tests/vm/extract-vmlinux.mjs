/**
 * extract-vmlinux.mjs BZIMAGE OUT - takes the uncompressed kernel out of a bzImage, because qemu's microvm starts an ELF image
 * through its PVH note and nothing else.
 *
 * The payload's place is in the boot header (Documentation/arch/x86/boot.rst: setup_sects at 0x1f1, payload_offset at 0x248,
 * payload_length at 0x24c); its last four bytes are the uncompressed size.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'

/** First bytes of each format that Debian kernels have used, and the program that undoes it. */
const FORMATS = [
  { magic: '02214c18', program: 'lz4', args: ['-d', '-c', '-'] },
  { magic: 'fd377a58', program: 'xz', args: ['-d', '-c', '--single-stream'] },
  { magic: '28b52ffd', program: 'zstd', args: ['-d', '-c', '-q'] },
  { magic: '1f8b0800', program: 'gzip', args: ['-d', '-c'] },
]

const [source, target] = process.argv.slice(2)
const image = readFileSync(source)
const setupSectors = image[0x1f1] || 4
const start = (setupSectors + 1) * 512 + image.readUInt32LE(0x248)
const payload = image.subarray(start, start + image.readUInt32LE(0x24c))
const magic = payload.subarray(0, 4).toString('hex')
const format = FORMATS.find((known) => known.magic === magic)
if (!format) throw new Error(`${source}: unknown compression of the kernel, it starts with ${magic}`)
const unpacked = execFileSync(format.program, format.args, {
  input: payload.subarray(0, -4),
  maxBuffer: 512 * 2 ** 20,
  stdio: ['pipe', 'pipe', 'ignore'],
})
if (unpacked.subarray(1, 4).toString() !== 'ELF') throw new Error(`${source}: the unpacked kernel is not an ELF image`)
writeFileSync(target, unpacked)
