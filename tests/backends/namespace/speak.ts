/** Frames by hand to launch, for tests of its two ends (speak.py). */
import { join } from 'node:path'
import { execa } from 'execa'
import { commandBlock } from '../../../src/backends/namespace/frames.ts'
import { FRAME } from '../../../src/contract.ts'
import { partWords } from '../../support/host-part.ts'

export type Frame = readonly [kind: number, bytes: Uint8Array]

export interface Answer {
  readonly frames: readonly (readonly [kind: number, text: string])[]
  /** Exit status of launch. */
  readonly status: number
}

export const COMMAND: Frame = [FRAME.run, commandBlock({ command: ['/bin/echo', 'ran'], env: {}, umask: 0o022 })]

export const kinds = ({ frames }: Answer) => frames.map(([kind]) => kind)

export async function speak<Told>(
  frames: readonly Frame[],
  to: object,
  through: readonly string[] = [],
): Promise<Told> {
  const words = frames.map(([kind, bytes]) => [kind, Buffer.from(bytes).toString('hex')])
  const input = JSON.stringify({ launch: [...through, ...partWords('launch', [])], frames: words, ...to })
  return JSON.parse((await execa('python3', [join(import.meta.dirname, 'speak.py')], { input })).stdout) as Told
}
