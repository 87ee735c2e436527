/** Why the command never ran: a raw failure -> code, message and hint. Rows of tables, decided by step and errno only. */

import type { SetupFailure } from '../backends/outcome.ts'
import { EXEC_FAILURES } from '../contract.ts'
import type { ErrorCode } from '../error.ts'
import type { Surroundings } from '../host/facts.ts'
import { explainFailure } from '../host/probe-failures.ts'
import type { PlannedZone } from '../plan/plan.ts'
import { around } from '../plan/well-known-paths.ts'
import { type InvisiblePath, interpreterHint, shellWord } from './hints.ts'

export interface Explained {
  readonly code: ErrorCode
  readonly message: string
  readonly hint: string
}

interface ExecRow {
  readonly code: ErrorCode
  readonly what: string
  readonly hint: string
}

/** `interpreter` in `failure.detail`: ENOENT of a file that exists; what its `#!` line, or its ELF header, names is missing. */
const INTERPRETER = 'interpreter'

/** An interpreter is shown by its own path; the rest of the table knows no path. */
function hintOf(row: ExecRow, interpreter: InvisiblePath | undefined): string {
  return row === EXEC_FAILURES.interpreter && interpreter !== undefined ? interpreterHint(interpreter) : row.hint
}

function execRow({ code, errno, detail }: SetupFailure): ExecRow {
  if (errno === 'ENOENT') return detail.includes(INTERPRETER) ? EXEC_FAILURES.interpreter : EXEC_FAILURES.ENOENT
  const rows: Readonly<Record<string, ExecRow>> = EXEC_FAILURES
  return rows[errno] ?? { code, what: errno || 'cannot be executed', hint: EXEC_FAILURES.ENOENT.hint }
}

function inBrackets(words: string): string {
  return words === '' ? '' : ` (${words})`
}

/**
 * A failed execve(2) of the command.
 * @param program its first word, as the caller wrote it
 * @param interpreter what its `#!` line names, where that is on the host
 */
export function explainExec(failure: SetupFailure, program: string, interpreter?: InvisiblePath): Explained {
  const row = execRow(failure)
  const { code, what } = row
  const hint = hintOf(row, interpreter)
  const detail = failure.detail === INTERPRETER ? '' : failure.detail
  return { code, message: `${program || "''"}: ${what}${inBrackets(detail)}`, hint }
}

/** The hint for a failed set-up step without a more precise one. */
const ASK_DOCTOR = 'llm-do doctor   # tries every part of a sandbox on this machine and names what fails'

/** Facts about the place where a set-up step failed; they make the explanation narrower. */
export interface FailureContext {
  /** Executable of the engine, for fixes that name it. */
  readonly program?: string
  readonly around?: Surroundings
  /** The program that the `#!` line of the command names, where it is on the host and not inside. */
  readonly interpreter?: InvisiblePath | undefined
  /** Zones of the sandbox, to name the host's directory behind a path inside. */
  readonly zones?: readonly Pick<PlannedZone, 'source' | 'target'>[]
}

/** The hint for a path of a container that differs from the plan. */
const EXCHANGED = 'run again; if it stays so, look at which program exchanges it'

/** PATH is the path of the step; in a hint, as a word of a shell. */
type SetupRow = readonly [step: string, errno: string | undefined, why: string, hint: string]

const STREAM_HINT = 'give the command a file, a pipe or a terminal: </dev/null, >FILE, 2>FILE'

/** A look at what writable zones take (native/runner/zone-size.c). */
const SIZE_OF_ZONES = 'launch: size of zones'

/** As root the command has a separate id; an idmapped mount gives a directory to that id, which not every file system supports. */
const SETUP_FAILURES: readonly SetupRow[] = [
  ['init: chdir', 'ENOENT', 'the directory PATH does not exist', 'create it, or start in another directory'],
  [
    'init: chdir',
    'EACCES',
    "the command's user may not enter PATH (under root that is an id of its own, to which not every file system can lend what is closed to others)",
    'chmod o+rx PATH, or run llm-do as a plain user who owns it, or keep it on ext4, xfs or btrfs (idmapped mounts)',
  ],
  [
    'launch: stream',
    'EISDIR',
    'PATH is a directory, through which the command would reach the files of the host around every mount',
    STREAM_HINT,
  ],
  [
    'launch: stream',
    undefined,
    'PATH is closed, or was opened with O_PATH, so nothing can be read from it or written to it',
    STREAM_HINT,
  ],
  [
    'stage: idmap zone of root',
    undefined,
    "PATH is root's, and only an idmapped mount, which is not to be had for it or for a mount below it, could lend it for writing",
    '--cow PATH --cow-upper copy, which llm-do apply takes over; or --ro PATH; or chown it to a user, whom the command then runs as: chown -R USER PATH; or keep it, and what is mounted below it, on ext4, xfs or btrfs',
  ],
  [
    'stage: zone of root',
    undefined,
    "PATH is root's, and without namespaces nothing could lend it to a command that is not root",
    'start it as another user (docker run --user), or chown the directory to one, whom the command then runs as: chown -R USER PATH',
  ],
  [
    'stage: idmap layer of root',
    undefined,
    "the directory is root's, and the file system that would keep the changes has no idmapped mounts; that of a container, which is an overlay, is one of them",
    '--cow-upper memory; or a volume of ext4, xfs or btrfs at /var/lib/llm-do',
  ],
  [
    'launch: protect',
    'EPERM',
    "PATH runs with other rights than its caller's (set-id bit or capabilities), so it cannot be a writable zone of root",
    '--ro PATH; or take its bits away (chmod u-s,g-s; setcap -r)',
  ],
  [
    'launch: protect',
    'ENODATA',
    'PATH is hidden by the policy (hide), or lies in a directory that is, so it cannot be a zone',
    'leave out the zone, or name what is to be hidden more exactly: config/.env instead of .env',
  ],
  [
    'launch: protect',
    'ELOOP',
    'PATH is protected but is behind too many symbolic links',
    'replace one of the links by what it leads to, or show the zone read-only',
  ],
  [
    'launch: protect',
    'EBUSY',
    "PATH is a writable zone, and a protected link, or the repository's configuration (core.hooksPath), leads to all of it",
    'let it lead to a directory of its own, or show PATH read-only',
  ],
  [
    'launch: protect',
    'EBADMSG',
    'PATH is a configuration that git would not read either, so nothing says what git runs here',
    'git config --file PATH --list  says which line',
  ],
  [
    'launch: protect',
    'EACCES',
    'PATH cannot be looked at (permission denied), so nothing could say whether what the host runs or obeys lies in it',
    'chmod u+rwx PATH, if you own it; or mount its sibling directories as separate zones; or mount the zone with --ro',
  ],
  [
    'launch: protect',
    'ENAMETOOLONG',
    'PATH has a path below it that is longer than the kernel takes, so not all of it can be looked at',
    'name the directories that the command needs to write one by one',
  ],
  [
    'launch: protect',
    'E2BIG',
    'PATH has more than a million entries, too many to look through for git directories before each run',
    'name the directories that the command needs to write one by one; or --protect-not .git --protect-not .hg --protect-not .jj',
  ],
  [
    SIZE_OF_ZONES,
    'E2BIG',
    'PATH has more than a million entries or 32 file systems, too many to add up for --rw-size',
    'name the directories that the command needs to write one by one, or --rw-size none',
  ],
  [
    SIZE_OF_ZONES,
    undefined,
    'what PATH takes cannot be added up, so --rw-size would say nothing',
    'open what is closed (chmod -R u+rwX), remove what is too deep, or --rw-size none',
  ],
  [
    'stage: read directory',
    'EACCES',
    'PATH in a writable zone is closed to its own user, and without namespaces what is protected in it cannot be told apart from the rest',
    'chmod u+rwx PATH',
  ],
  [
    'launch: mount below a cow zone',
    undefined,
    'an overlay would show what lies under the mount, and take the changes to that',
    'umount PATH; or mount its sibling directories as separate zones, and PATH with --ro PATH',
  ],
  [
    'launch: go on with layer',
    'ESTALE',
    'it belongs to other copy-on-write directories than this run has',
    'leave out --cow, --rw and --zone: --cow-continue shows the directories of the layer',
  ],
  ['launch: open layer', undefined, 'the changes to go on with are gone, or are in use', 'llm-do ps --cow'],
  [
    'launch: copy zones',
    'EDQUOT',
    'the copy alone takes more than the changes may (cow.size, --cow-size)',
    '--cow-size none, or a size with room for the whole directory',
  ],
  [
    'launch: copy zones',
    'EACCES',
    'something in the directory cannot be read by this user, so there would be no whole copy',
    'without a copy: --cow-upper disk',
  ],
  [
    'stage: overlay',
    'EINVAL',
    'copy-on-write zones need an overlay whose layers are given by descriptor (Linux 6.15)',
    '--cow-upper copy, or Linux 6.15 and later',
  ],
  [
    'stage: mount overlay',
    undefined,
    'this file system cannot be a layer of an overlay; that of a container, which is an overlay itself, is one of them',
    '--cow-upper memory, or --cow-upper copy; or keep the directory on ext4, xfs or btrfs (in a container: on a volume)',
  ],
  [
    'network: nftables',
    undefined,
    'a network restricted by name needs nftables with TPROXY, which this kernel has not or does not give here',
    'modprobe nf_tables nft_tproxy nfnetlink_log; or --net none, or --net host if the command may reach everything',
  ],
  [
    'network: nflog',
    undefined,
    'a network restricted by name needs nfnetlink_log, which this kernel has not or does not give here',
    'modprobe nfnetlink_log; or --net none, or --net host if the command may reach everything',
  ],
  [
    'net: publish',
    'EADDRINUSE',
    'PATH of this host is in use, so no server inside can be published there',
    '--publish with another PORT: PORT:INSIDE',
  ],
  ['net: publish', 'EACCES', 'PATH of this host is not yours to listen on', '--publish with a port from 1024 on'],
  [
    'net: publish',
    'EADDRNOTAVAIL',
    'PATH: this host has no such address',
    '--publish PORT:INSIDE, which means 127.0.0.1',
  ],
  [
    'container-init: mounts',
    'EROFS',
    'PATH would be writable below something that is read-only',
    '--ro PATH, which makes it a zone of its own; or Docker 25 and later, whose read-only mounts are recursive',
  ],
  [
    'container-init: mounts',
    undefined,
    'PATH is not what was planned: it was exchanged while the container was made',
    EXCHANGED,
  ],
]

/** Steps of the table, for a test that wants each of them to exist. */
export const EXPLAINED_STEPS = [...new Set(SETUP_FAILURES.map(([step]) => step))]

/** The host's path of a path inside; itself where no zone shows it. */
function hostPathOf(path: string, zones: FailureContext['zones'] = []): string {
  const nearest = around(path, zones)
  return nearest === undefined ? path : nearest.source + path.slice(nearest.target.length)
}

/** The command had begun, and its end is not known. Nothing here may sound as if it can simply be run again. */
export function explainLost({ step, path, errno, detail }: SetupFailure): Explained {
  if (step === 'launch: carry stream')
    return {
      code: 'BACKEND_FAILED',
      message: `${path}: the file that it leads to fails (${errno}): a part of what went through it is lost, and the command was stopped`,
      hint: 'make room on its file system, or raise the file size limit (ulimit -f)',
    }
  if (step === SIZE_OF_ZONES)
    return {
      code: 'BACKEND_FAILED',
      message: `${path}: what it takes could not be added up any more (${errno}), so the limit of writable zones (--rw-size) would say nothing: the command was stopped`,
      hint: 'remove what is too deep, or open what is closed (chmod -R u+rwX)',
    }
  if (step === 'launch: hide')
    return {
      code: 'BACKEND_FAILED',
      message: `${path} is to be hidden (hide), or holds what is, and could not be covered or looked at (${errno}): the command was stopped`,
      hint: 'start the run again: what is there at its start is hidden',
    }
  const what = [step, path, errno, detail].filter((part) => part !== '').join(': ')
  // Launch would have reported what it set aside at the end; native/runner/sweeper.c, which did it instead, reports nothing.
  const swept =
    step === 'launch'
      ? '; new files at protected names are renamed to NAME.set-aside.RUN, unless what does that was killed too'
      : ''
  return {
    code: 'BACKEND_FAILED',
    message: `the end of the command is lost (${what}): it had begun, or may have, and what it did until then stays done${swept}`,
    hint: 'look at what it changed before you run it again; if it happens again, see what killed the sandbox: dmesg, journalctl -k',
  }
}

function explainStep(
  { step, path, errno }: SetupFailure,
  { zones }: FailureContext,
): Omit<Explained, 'code'> | undefined {
  const row = SETUP_FAILURES.find(([known, knownErrno = errno]) => known === step && knownErrno === errno)
  if (row === undefined) return undefined
  const [, , why, hint] = row
  const shownPath = /^(container-)?init:/.test(step) ? hostPathOf(path, zones) : path
  return {
    message: why.replace(/\bPATH\b/g, () => shownPath),
    hint: hint.replace(/\bPATH\b/g, () => shellWord(shownPath)),
  }
}

/** A step of building the sandbox that failed: which one, on what, the errno, and what that means here. */
export function explainSetup(failure: SetupFailure, context: FailureContext = {}): Explained {
  const { program = 'bwrap', around } = context
  const { step, path, errno, detail } = failure
  const where = path === '' ? '' : ` ${path}`
  const failed = errno === '' ? '' : `: ${errno}`
  const seen = `${step}${where}${failed}${inBrackets(detail)}`
  const known = explainStep(failure, context)
  if (known !== undefined) return { code: 'SETUP_FAILED', message: `${seen}: ${known.message}`, hint: known.hint }
  const { why, fix } = explainFailure({ ok: false, step, errno, message: detail }, { program, around })
  return { code: 'SETUP_FAILED', message: fix === '' ? seen : `${seen}: ${why}`, hint: fix === '' ? ASK_DOCTOR : fix }
}
