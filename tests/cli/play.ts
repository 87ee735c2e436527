/** Plays a transcript: by bash, with the built commands first on PATH, in a new directory and a new home per heading. */
import { mkdir } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { execa } from 'execa'
import { expect } from 'vitest'
import { newDirectory } from '../support/directory.ts'
import { checkoutFor, currentUser } from '../support/users.ts'
import { matches, type Session, type Step } from './transcript.ts'

const BIN = join(checkoutFor(currentUser()), 'bin')

async function play({ command }: Step, directory: string) {
  const { all, exitCode } = await execa('bash', ['-c', command], {
    cwd: join(directory, 'work'),
    env: { PATH: `${BIN}${delimiter}${process.env.PATH ?? ''}`, HOME: join(directory, 'home'), LANG: 'C.UTF-8' },
    extendEnv: false,
    // One pipe for both streams keeps their order; our own stdin is not used.
    all: true,
    stdin: 'ignore',
    reject: false,
    stripFinalNewline: false,
  })
  return { output: all, status: exitCode }
}

/** Fails with the whole output, ready to be read against the block. @param file for messages */
export async function playSession({ steps }: Session, file: string): Promise<void> {
  const directory = await newDirectory({ mode: 0o755 })
  try {
    for (const name of ['work', 'home']) await mkdir(join(directory.path, name))
    for (const step of steps) {
      const { output, status } = await play(step, directory.path)
      const shown = { at: `${file}:${step.line}`, command: step.command, status, output }
      const isExpected = matches(step.expected, output) && status === step.status
      expect(isExpected ? shown : { ...shown, mismatch: true }).toEqual(
        isExpected ? shown : { ...shown, status: step.status, output: step.expected.join('\n') },
      )
    }
  } finally {
    await directory.remove()
  }
}
