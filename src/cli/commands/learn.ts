/**
 * `llm-do learn [options] -- COMMAND`: prints the smallest profile under which a command succeeds.
 * Edge: stdio.
 */
import { hasBash } from '../../host/program.ts'
import { learn as learnProfile } from '../../learn/learn.ts'
import { profileText } from '../../learn/profile.ts'
import type { Result } from '../../report/result.ts'
import { neutralise, resultLines } from '../../report/text.ts'
import type { Call } from '../call.ts'
import { commandOf, readCommandLine } from '../exec-arguments.ts'
import { writeStderr, writeStdout } from '../stdio.ts'
import { verbNamed } from '../subcommands.ts'
import { usageError } from '../usage-error.ts'
import { readRequest, untilSignal } from './exec.ts'

/** They would narrow the run, record it or show something else: leaving one out in silence would be another run than was asked for. */
const NOT_LEARNED_WITH = ['worker', 'workshop', 'audit', 'cow-continue', 'plan', 'argv', 'why', 'in']
/** As flags: a variable may ask it of all runs. */
const NO_FLAGS = ['json', 'apply']

const LEARN = verbNamed('learn')

/** Characters at the end of what a command said that nothing helps. */
const SHOWN = 2000

async function giveUp(result: Result, runs: number): Promise<number> {
  await writeStdout('')
  await writeStderr([
    ...result.stderr
      .slice(-SHOWN)
      .split('\n')
      .filter((line) => line !== '')
      .map(neutralise),
    `llm-do: nothing that may be granted lets it succeed (${runs === 1 ? '1 run' : `${runs} runs`})`,
    ...resultLines(result),
  ])
  return result.exitStatus
}

export async function learn(call: Call): Promise<number> {
  const line = readCommandLine(call.text, hasBash(), { verb: LEARN })
  if (line.help) {
    const { LEARN_USAGE } = await import('../help.ts')
    await writeStdout(LEARN_USAGE)
    return 0
  }
  commandOf(line, LEARN)
  const request = await readRequest(call, line)
  const { options, given, flags } = request
  const refused =
    NOT_LEARNED_WITH.find((name) => given[name] !== undefined) ?? NO_FLAGS.find((name) => flags[name] !== undefined)
  if (refused !== undefined)
    throw usageError(
      `--${refused}: what is learned runs again and again, without a trace.`,
      `llm-do learn without --${refused}`,
    )
  const { apply: _, ...rest } = options
  const learned = await untilSignal((signal, { signals }) =>
    learnProfile({
      ...rest,
      cwd: options.cwd ?? '/',
      env: call.env,
      signal,
      signals,
      tell: (line) => void writeStderr([`llm-do: ${neutralise(line)}`]),
    }),
  )
  const { result } = learned
  if (!result.ok) return await giveUp(result, learned.runs)
  await writeStdout(profileText({ learned, base: options.profile ?? 'default', command: options.command }))
  return 0
}
