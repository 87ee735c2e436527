/** Sandboxes in the background for tests: started by name, listed, entered, and stopped with the test. */

import { expect, onTestFinished } from 'vitest'
import { runCli } from '../support/cli.ts'
import { canBeHere, cliHere } from '../support/cli-here.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { currentUser, type User } from '../support/users.ts'

/** Names belong to one user, and other test files run in parallel. */
let count = 0
export const newName = (): string => {
  count += 1
  return `test-${process.pid}-${count}`
}

interface Answer {
  readonly status: number | undefined
  readonly out: string
  readonly err: string
}

export async function backgroundOf(as: User) {
  const cwd = await temporaryDirectory({ owner: as, mode: 0o755 })
  const llmDo = async (words: readonly string[], stdin?: string, env = {}): Promise<Answer> => {
    const isHere = as === currentUser() && stdin === undefined && canBeHere(words)
    const { status, stdout, stderr } = await (isHere
      ? cliHere(words, { cwd, env: { HOME: cwd, ...env } })
      : runCli(words, { ...{ program: 'llm-do', as, cwd, env }, ...(stdin !== undefined && { stdin }) }))
    return { status, out: stdout.toString(), err: stderr.toString() }
  }
  /** Started, and stopped with the test. */
  const start = async (...words: readonly string[]): Promise<string> => {
    const name = newName()
    onTestFinished(async () => void (await llmDo(['stop', name])))
    expect(await llmDo(['run', '--name', name, ...words])).toEqual({ status: 0, out: `${name}\n`, err: '' })
    return name
  }
  /** Another command in it, by the words of `exec`. */
  const enter = (name: string, words: readonly string[], stdin?: string, env = {}) =>
    llmDo(['exec', '--in', name, ...words], stdin, env)
  const inside = (name: string, script: string, stdin?: string, env = {}) =>
    enter(name, ['--', 'sh', '-c', script], stdin, env)
  const listed = async (name: string) =>
    (JSON.parse((await llmDo(['ps', '--json'])).out) as { name?: string; id: string; pid: number }[]).find(
      (run) => run.name === name,
    )
  const ended = async (name: string) =>
    (await llmDo(['ps', '--ended', '--json'])).out
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as { name: string; state: string; result?: { reason: string; exitCode: number } })
      .find((one) => one.name === name)
  return { cwd, llmDo, start, enter, inside, listed, ended }
}
