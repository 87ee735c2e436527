/**
 * `llm-do stop [NAME...]`: ends sandboxes in the background, and forgets them, their logs and their results.
 *
 * Edge: signals, the clock.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { SandboxError } from '../../error.ts'
import { isHere } from '../../os/process-identity.ts'
import {
  directoryOfNamed,
  findNamed,
  forgetNamed,
  isSupervised,
  lastNamed,
  type NamedSandbox,
} from '../../run/named-sandboxes.ts'
import type { Environment } from '../call.ts'
import { currentDirectory } from '../current-directory.ts'
import { eachWord } from '../each-word.ts'
import { subcommand } from '../subcommand.ts'

const PAUSE_MS = 10
/** The command has a quarter of a second to ends on its own; then the walls are taken down, and changes are looked through. */
const PATIENCE_MS = 10_000

/** `<boot>/<pid namespace>/<pid>:<start time>`. */
const pidOf = (identity: string): number => Number.parseInt(identity.slice(identity.lastIndexOf('/') + 1), 10)

/** In another pid namespace its number is that of any process here. */
function signalSupervisor(env: Environment, sandbox: NamedSandbox, signal: NodeJS.Signals): void {
  try {
    if (isHere(sandbox.supervisor) && isSupervised(env, sandbox)) process.kill(pidOf(sandbox.supervisor), signal)
  } catch {
    // It has ended in between.
  }
}

/** @returns whether it has ended in time */
async function untilGone(env: Environment, sandbox: NamedSandbox): Promise<boolean> {
  const until = performance.now() + (isHere(sandbox.supervisor) ? PATIENCE_MS : 0)
  while (isSupervised(env, sandbox)) {
    if (performance.now() >= until) return false
    await sleep(PAUSE_MS)
  }
  return true
}

/** It ends its run and says so in the result; one that does not is killed, and the run with it. */
async function stopOne(env: Environment, sandbox: NamedSandbox): Promise<string> {
  const { name, supervisor } = sandbox
  signalSupervisor(env, sandbox, 'SIGTERM')
  if (!(await untilGone(env, sandbox))) signalSupervisor(env, sandbox, 'SIGKILL')
  if (!(await untilGone(env, sandbox)))
    throw new SandboxError('BACKEND_FAILED', `${name}: process ${pidOf(supervisor)} does not end.`, {
      hint: `ps -o stat,wchan -p ${pidOf(supervisor)}`,
    })
  forgetNamed(directoryOfNamed(env, name))
  return `${name} was stopped`
}

export const stop = subcommand('stop', async ({ operands }, call) => {
  const { env } = call
  const words = operands.length === 0 ? [lastNamed(env, currentDirectory(call)).name] : operands
  return await eachWord(words, async (word) => stopOne(env, findNamed(env, word)))
})
