/** Plays tests/cli/*.md: what a person sees at the command line is what is written there. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { describeWith } from '../support/needs.ts'
import { playSession } from './play.ts'
import { parseTranscript } from './transcript.ts'

const TRANSCRIPTS = readdirSync(import.meta.dirname).filter((name) => name.endsWith('.md'))

test('there are transcripts', () => {
  expect(TRANSCRIPTS.length).toBeGreaterThan(0)
})

describeWith(['bwrap', 'userns'], 'the command line behaves as written', () => {
  describe.each(TRANSCRIPTS)('%s', (file) => {
    const sessions = parseTranscript(readFileSync(join(import.meta.dirname, file), 'utf8'))
    test.each(sessions.map((session) => [session.title, session] as const))('%s', (_, session) =>
      playSession(session, file),
    )
  })
})
