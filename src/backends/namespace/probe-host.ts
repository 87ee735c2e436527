/**
 * Facts that only another process can find out before a first run: whether it can enter a cgroup, and the version of Landlock. A start
 * costs node 3 ms, so launch answers both together. A shell tries a cgroup that launch cannot enter again, because it explains the error.
 * Edge: processes.
 */
import { type Enter, enterByShell } from '../../cgroup/enter.ts'
import { SandboxError } from '../../error.ts'
import { type HostCall, hostCall } from '../../os/native-programs.ts'
import { type ProgramEnd, runProgram } from '../../os/run-program.ts'
import { quoteText } from '../../text/units.ts'

export interface ProcessQuestions {
  readonly enter: Enter
  /**
   * Version of Landlock, 0 without.
   * @throws SandboxError SETUP_FAILED without an answer: "none" would remove a wall
   */
  readonly landlockAbi: () => Promise<number>
}

/** Milliseconds; it is a system call or two. */
const PATIENCE_MS = 10_000

/** @param nativeDirectory a directory of native programs that can be trusted: they are executed */
export function processQuestions(nativeDirectory: string): ProcessQuestions {
  const callWith = (groups: readonly string[]) => hostCall('launch', ['--probe-host', ...groups], nativeDirectory)
  const runProbe = (...groups: readonly string[]): Promise<ProgramEnd> =>
    runProgram({ ...callWith(groups), patienceMs: PATIENCE_MS })
  const probes: { entering?: Promise<ProgramEnd> } = {}
  return {
    enter: async (group) => {
      probes.entering = runProbe(group)
      return wasEntered(await probes.entering) ? undefined : enterByShell(group)
    },
    landlockAbi: async () => {
      const entered = await probes.entering
      return abiIn(entered) ?? abiOrRefusal(callWith([]), await runProbe())
    },
  }
}

function wasEntered({ ok, stdout }: ProgramEnd): boolean {
  return ok && /^entered\n\d+\n$/.test(stdout)
}

/** @returns undefined for anything but an answer */
function abiIn(end: ProgramEnd | undefined): number | undefined {
  const abi = end?.ok === true ? /^(?:entered\n)?(\d+)\n$/.exec(end.stdout)?.[1] : undefined
  return abi === undefined ? undefined : Number(abi)
}

function abiOrRefusal({ file, argv }: HostCall, end: ProgramEnd): number {
  const abi = abiIn(end)
  if (abi !== undefined) return abi
  const got = end.why || quoteText(end.stdout)
  throw new SandboxError('SETUP_FAILED', `${file} ${argv.join(' ')}: expected a number, got ${got}`, {
    hint: /EMFILE|ENFILE/.test(got)
      ? 'no more files may be open: ulimit -n 1024'
      : 'try again; if it stays so: llm-do doctor',
  })
}
