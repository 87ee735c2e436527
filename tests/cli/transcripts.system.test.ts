/**
 * Plays tests/cli/*.md: every console block is run by bash with the built commands first on PATH, in a new directory and a
 * new home per heading. A transcript that fails shows the whole output, ready to be read against the block.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { newDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { checkoutFor, currentUser } from '../support/users.ts'
import { matches, parseTranscript, type Session, type Step } from './transcript.ts'

const BIN = join(checkoutFor(currentUser()), 'bin')
const TRANSCRIPTS = readdirSync(import.meta.dirname).filter((name) => name.endsWith('.md'))

async function play({ command }: Step, place: string) {
  const { all, exitCode } = await execa('bash', ['-c', command], {
    cwd: join(place, 'work'),
    env: { PATH: `${BIN}${delimiter}${process.env.PATH ?? ''}`, HOME: join(place, 'home'), LANG: 'C.UTF-8' },
    extendEnv: false,
    // One pipe for both streams keeps their order; our own stdin is nobody's.
    all: true,
    stdin: 'ignore',
    reject: false,
    stripFinalNewline: false,
  })
  return { output: all, status: exitCode }
}

async function playAll({ steps }: Session, file: string): Promise<void> {
  const place = await newDirectory({ mode: 0o755 })
  try {
    await execa('mkdir', [join(place.path, 'work'), join(place.path, 'home')])
    for (const step of steps) {
      const { output, status } = await play(step, place.path)
      const shown = { at: `${file}:${step.line}`, command: step.command, status, output }
      const isExpected = matches(step.expected, output) && status === step.status
      expect(isExpected ? shown : { ...shown, mismatch: true }).toEqual(
        isExpected ? shown : { ...shown, status: step.status, output: step.expected.join('\n') },
      )
    }
  } finally {
    await place.remove()
  }
}

test('there are transcripts', () => {
  expect(TRANSCRIPTS.length).toBeGreaterThan(0)
})

describeWith(['bwrap', 'userns'], 'the command line behaves as written', () => {
  describe.each(TRANSCRIPTS)('%s', (file) => {
    const sessions = parseTranscript(readFileSync(join(import.meta.dirname, file), 'utf8'))
    test.each(sessions.map((session) => [session.title, session] as const))('%s', (_, session) =>
      playAll(session, file),
    )
  })
})
