import { describe, expect, test } from 'vitest'
import { bytesOf, LogReader, OutputLog } from '../../src/run/output-log.ts'
import { temporaryDirectory } from '../support/directory.ts'

const textOf = (reader: LogReader): string => Buffer.concat(reader.next().map(bytesOf)).toString()

describe('the log of a command in the background', () => {
  test('gives every byte back, and only once', async () => {
    const directory = await temporaryDirectory()
    const log = new OutputLog(directory)
    const reader = new LogReader(directory)
    log.write('stdout', Buffer.from('ü\n'))
    log.write('stderr', Buffer.from([0xff, 0]))
    const lines = reader.next()
    expect(lines.map(({ stream }) => stream)).toEqual(['stdout', 'stderr'])
    expect(lines.map(bytesOf)).toEqual([Buffer.from('ü\n'), Buffer.from([0xff, 0])])
    expect(reader.next()).toEqual([])
    log.write('stdout', Buffer.from('more'))
    expect(textOf(reader)).toBe('more')
    log.close()
  })

  test('has two files of bounded size, and a reader that keeps up misses nothing', async () => {
    const directory = await temporaryDirectory()
    const log = new OutputLog(directory, 1000)
    const reader = new LogReader(directory)
    const pieces = Array.from({ length: 50 }, (_, at) => `piece ${at};`)
    const read = pieces.map((piece) => {
      log.write('stdout', Buffer.from(piece))
      return textOf(reader)
    })
    expect(read).toEqual(pieces)
    const late = textOf(new LogReader(directory))
    expect(pieces.join('').endsWith(late)).toBe(true)
    expect(late.length).toBeLessThan(pieces.join('').length)
    log.close()
  })

  test('of nothing is empty', async () => {
    expect(new LogReader(await temporaryDirectory()).next()).toEqual([])
  })
})
