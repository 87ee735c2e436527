/**
 * What only another process can find out before a first run: whether one can be in a cgroup, and the version of Landlock. Starting
 * one costs node 3 ms, so launch answers both at once. What it cannot enter a shell tries again, which has words for what is wrong.
 * Edge: processes.
 */
import { type Enter, enterByShell } from '../../cgroup/enter.ts'
import { SandboxError } from '../../error.ts'
import { type ProgramEnd, runProgram } from '../../os/run-program.ts'
import { quoteText } from '../../text/units.ts'

export interface ProcessQuestions {
  readonly enter: Enter
  /**
   * Version of Landlock here, 0 without.
   * @throws SandboxError SETUP_FAILED when there is no answer: "none" would take a wall away
   */
  readonly landlockAbi: () => Promise<number>
}

/** Milliseconds; it is a system call or two. */
const PATIENCE_MS = 10_000

/** @param helpers a directory of helpers that can be trusted: they are executed */
export function processQuestions(helpers: string): ProcessQuestions {
  const file = `${helpers}/launch`
  const askLaunch = (...groups: readonly string[]): Promise<ProgramEnd> =>
    runProgram({ file, argv: ['--landlock-abi', ...groups], patienceMs: PATIENCE_MS })
  const answers: { entering?: Promise<ProgramEnd> } = {}
  return {
    enter: async (group) => {
      answers.entering = askLaunch(group)
      return wasEntered(await answers.entering) ? undefined : enterByShell(group)
    },
    landlockAbi: async () => {
      const told = await answers.entering
      return abiIn(told) ?? abiOrRefusal(file, await askLaunch())
    },
  }
}

function wasEntered({ ok, stdout }: ProgramEnd): boolean {
  return ok && /^entered\n\d+\n$/.test(stdout)
}

/** @returns undefined for anything but an answer */
function abiIn(answer: ProgramEnd | undefined): number | undefined {
  const abi = answer?.ok === true ? /^(?:entered\n)?(\d+)\n$/.exec(answer.stdout)?.[1] : undefined
  return abi === undefined ? undefined : Number(abi)
}

function abiOrRefusal(file: string, answer: ProgramEnd): number {
  const abi = abiIn(answer)
  if (abi !== undefined) return abi
  const got = answer.why || quoteText(answer.stdout)
  throw new SandboxError('SETUP_FAILED', `${file} --landlock-abi: expected a number, got ${got}`, {
    hint: /EMFILE|ENFILE/.test(got)
      ? 'no more files may be open: ulimit -n 1024'
      : 'try again; if it stays so: llm-do doctor',
  })
}
