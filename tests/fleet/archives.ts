/** ZIP files that no archiver makes, written byte by byte; and honest ones. */
import { crc32, deflateRawSync } from 'node:zlib'
import { fromBufferPromise } from 'yauzl'

export interface Member {
  readonly name: string | Buffer
  readonly content?: Buffer | string
  /** Unix mode with its kind; 0o100644 by default, 0o040755 for a name that ends in a slash. */
  readonly mode?: number
  /** Unpacked size according to the archive. */
  readonly declaredBytes?: number
  /** General purpose bits; default: the name is UTF-8. */
  readonly flags?: number
}

const u16 = (value: number): Buffer => Buffer.from(new Uint16Array([value]).buffer)
const u64 = (value: number): Buffer => Buffer.from(new BigUint64Array([BigInt(value)]).buffer)
const u32 = (value: number): Buffer => Buffer.from(new Uint32Array([value]).buffer)

/** APPNOTE.TXT 4.3.14 and 4.3.15: where a number does not fit into the end, it is here. */
function zip64End({ entries, bytes, offset }: { entries: number; bytes: number; offset: number }): Buffer {
  const counts = [u64(entries), u64(entries), u64(bytes), u64(offset)]
  const record = [u32(0x06064b50), u64(44), u16(45), u16(45), u32(0), u32(0), ...counts]
  return Buffer.concat([...record, u32(0x07064b50), u32(0), u64(offset + bytes), u32(1)])
}

/** @param declaredEntries what its end says, where that is a lie */
export function archiveOf(members: readonly Member[], declaredEntries = members.length): Buffer {
  const bodies: Buffer[] = []
  const directory: Buffer[] = []
  let offset = 0
  for (const { name, content = '', mode, declaredBytes, flags = 0x0800 } of members) {
    const nameBytes = Buffer.from(name as string)
    const bytes = Buffer.from(content as string)
    const packed = deflateRawSync(bytes)
    const kind = mode ?? (nameBytes.at(-1) === 0x2f ? 0o040755 : 0o100644)
    const sum = [crc32(bytes), packed.length, declaredBytes ?? bytes.length].map((value) => u32(value))
    const head = [u16(flags), u16(8), u32(0), ...sum, u16(nameBytes.length), u16(0)]
    const body = Buffer.concat([u32(0x04034b50), u16(20), ...head, nameBytes, packed])
    const tail = [u16(0), u16(0), u16(0), u32((kind << 16) >>> 0), u32(offset), nameBytes]
    directory.push(Buffer.concat([u32(0x02014b50), u16(0x0314), u16(20), ...head, ...tail]))
    bodies.push(body)
    offset += body.length
  }
  const central = Buffer.concat(directory)
  const counts = [u16(Math.min(declaredEntries, 0xffff)), u16(Math.min(declaredEntries, 0xffff))]
  const end = [u32(0x06054b50), u16(0), u16(0), ...counts, u32(central.length), u32(offset), u16(0)]
  const zip64 = declaredEntries < 0xffff ? [] : [zip64End({ entries: declaredEntries, bytes: central.length, offset })]
  return Buffer.concat([...bodies, central, ...zip64, ...end])
}

export async function namesIn(zip: Buffer | undefined): Promise<readonly string[]> {
  const names: string[] = []
  const archive = zip && (await fromBufferPromise(zip, { lazyEntries: true }))
  if (archive) for await (const { fileName } of archive.eachEntry()) names.push(fileName)
  return names
}
