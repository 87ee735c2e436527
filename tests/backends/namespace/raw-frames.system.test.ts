/** The runner and a caller that speaks frames by hand: what it must refuse before anything is made. */
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { commandBlock } from '../../../src/backends/namespace/frames.ts'
import { type LaunchRecord, writeLaunchFile } from '../../../src/backends/namespace/launch-file.ts'
import { FRAME } from '../../../src/contract.ts'
import { describeWith } from '../../support/needs.ts'
import { launchFile } from './launch-files.ts'
import { type Answer, COMMAND, type Frame, kinds, speak as speakTo } from './speak.ts'

const speak = (file: string, frames: readonly Frame[], descriptors = 0) =>
  speakTo<Answer>(frames, { file, descriptors })

const run = (...command: readonly string[]): Frame => [FRAME.run, commandBlock({ command, env: {}, umask: 0o022 })]

const guards = (...records: readonly LaunchRecord[]): Frame => [FRAME.guards, writeLaunchFile(records)]
const HOLDS = guards(['at', '/nonexistent', 'missing'])
const STALE = guards(['at', '/etc/passwd', 'missing'])

const REFUSED: Answer = { status: 125, frames: [[FRAME.refused, '']] }

describeWith(['bwrap', 'userns'], 'a cold runner', () => {
  test('runs what comes as frames, and says how it ended', async () => {
    const file = await launchFile()
    for (const frames of [[COMMAND], [HOLDS, COMMAND]]) {
      const answer = await speak(file, frames)
      expect([answer.status, answer.frames[0], ...kinds(answer)]).toEqual([
        0,
        [FRAME.output, 'ran\n'],
        FRAME.output,
        FRAME.status,
      ])
    }
  })

  test('refuses a command whose guards do not hold', async () => {
    expect(await speak(await launchFile(), [STALE, COMMAND])).toEqual(REFUSED)
  })

  test('refuses a command that was planned for another tree or another caller', async () => {
    const file = await launchFile()
    const own = await readFile(file, 'latin1')
    const plan = (text: string): Frame => [FRAME.guards, Buffer.from(text, 'latin1')]
    expect(await speak(file, [plan(own), COMMAND])).toMatchObject({ status: 0 })
    const changes = [
      ['\0net\0none\0', '\0net\0host\0'],
      ['\0landlock\0on\0', '\0landlock\0off\0'],
      [/\0key\0[^\0]*\0/, '\0key\0another version\0'],
    ] as const
    for (const [from, to] of changes) {
      const other = own.replace(from, to)
      expect(other).not.toBe(own)
      expect(await speak(file, [plan(other), COMMAND])).toEqual(REFUSED)
    }
  })

  test('refuses a gate, which it would not wait at', async () => {
    const file = await launchFile()
    expect(kinds(await speak(file, [COMMAND], 3))).toEqual([FRAME.status]) // The same without it.
    expect(await speak(file, [COMMAND], 4)).toEqual(REFUSED)
  })

  test('hangs up on a second list of guards, and on frames that it does not know', async () => {
    const file = await launchFile()
    const unknown: Frame = [99, Buffer.alloc(0)]
    for (const frames of [[HOLDS, HOLDS, COMMAND], [unknown, COMMAND], [[FRAME.guards, Buffer.from('nonsense')]]])
      expect(await speak(file, frames as readonly Frame[])).toEqual({ status: 125, frames: [] })
  })

  test('ends a command whose output has no reader', async () => {
    const to = { file: await launchFile(), descriptors: 0, deaf: true }
    // It has no other sign of it: the connection is open in the other direction.
    expect(await speakTo<Answer>([run('/usr/bin/yes')], to)).toMatchObject({ status: 143 })
  })
})
