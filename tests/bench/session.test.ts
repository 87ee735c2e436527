import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'

interface Command {
  readonly line: string
  readonly status: number
  readonly variables: readonly (readonly [string, string])[]
  readonly script: string | undefined
  readonly words: readonly string[]
}

/** A plain module without declarations: what is used of it is said here. */
const { readCommand, readTraces, HISTORY, PROJECT } = (await import(
  pathToFileURL(join(import.meta.dirname, '../../bench/session.mjs')).href
)) as {
  readonly readCommand: (line: string) => Command
  readonly readTraces: () => Readonly<Record<string, readonly Command[]>>
  readonly HISTORY: readonly (readonly [string, string])[]
  readonly PROJECT: string
}

test('a status, variables, and a command that takes a shell', () => {
  expect(readCommand('!1 TZ=UTC A_B= grep -c "x" a | cat')).toMatchObject({
    status: 1,
    variables: [
      ['TZ', 'UTC'],
      ['A_B', ''],
    ],
    script: 'grep -c "x" a | cat',
    words: ['/bin/sh', '-c', 'grep -c "x" a | cat'],
  })
})

test('each trace has 200 commands', () => {
  expect(Object.values(readTraces()).map((commands) => commands.length)).toEqual([200, 200, 200])
})

// bin/ of the project was once kept out of the repository by our ignore rules, and no session could begin.
test('all that the project is committed from is in the repository', () => {
  const paths = HISTORY.flatMap(([, names]) => names.split(' '))
  expect(paths.filter((path) => !existsSync(join(PROJECT, path)))).toEqual([])
})
