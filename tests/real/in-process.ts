/** A run in this process by the words of a command line: the request of `llm-do exec --json` without the start of a node. */
import { mkdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { commandOf, readCommandLine } from '../../src/cli/exec-arguments.ts'
import { SandboxError } from '../../src/error.ts'
import { flagLayer } from '../../src/policy/option-layer.ts'
import { refusal } from '../../src/report/classify.ts'
import type { Result } from '../../src/report/result.ts'
import { resultLines } from '../../src/report/text.ts'
import { exec } from '../../src/run/exec.ts'
import type { TextRun } from './directory.ts'

export interface InProcess {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  readonly stdin?: string
  readonly signal?: AbortSignal
}

/** In the directory of the test file (own-directory.ts). */
function homeOfFile(): string {
  const home = join(tmpdir(), 'home')
  mkdirSync(home, { recursive: true })
  return home
}

/** A refusal is a result, as in JSON. */
export async function runHere(words: readonly string[], options: InProcess = {}): Promise<Result> {
  const home = homeOfFile()
  const { cwd = home, env, stdin, signal } = options
  const { given, ...line } = readCommandLine(words, true)
  const command = commandOf({ given, ...line })
  const profile = typeof given['profile'] === 'string' ? given['profile'] : undefined
  const caller = { PATH: process.env['PATH'], HOME: home, LANG: 'C.UTF-8', TMPDIR: tmpdir(), ...env }
  try {
    return await exec({
      command,
      layers: [flagLayer(given, cwd)],
      ...(profile === undefined ? {} : { profile }),
      cwd,
      env: caller,
      ...(stdin === undefined ? {} : { stdin: Buffer.from(stdin) }),
      ...(signal === undefined ? {} : { signal }),
    })
  } catch (error) {
    if (error instanceof SandboxError) return refusal(error, command, profile ?? 'default')
    throw error
  }
}

/** As a person reads it: what the command printed, then the lines about the run. */
export async function textHere(words: readonly string[], options: InProcess = {}): Promise<TextRun> {
  const result = await runHere(words, options)
  const lines = resultLines(result).map((line) => `${line}\n`)
  return { status: result.exitStatus, out: result.stdout, err: [result.stderr, ...lines].join('') }
}
