/**
 * The negative controls: the same attempt by bubblewrap as one would type it, without our chain. An attack that does not work
 * there proves nothing when it does not work here.
 */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { openUnlinked } from '../../src/backends/child-process.ts'
import type { Attempt, ObservedRun, Row, TestSite } from '../../src/doctor/contract-types.ts'
import type { Runner } from '../../src/doctor/self-test.ts'
import { processesWith, readOr } from '../support/processes.ts'

/** How an attack is seen to work: more words for bwrap. */
export interface Weakness {
  readonly words: readonly string[]
  /** A root of bwrap's own instead of the host's, for attacks that would change the host. */
  readonly bare?: boolean
  readonly only?: 'root'
}

/** A weakness, or why there is none to show. */
export type Control = Weakness | { readonly none: string }

const OWN_PROC = ['--unshare-pid', '--proc', '/proc'] as const
const WORKS_ANYWHERE = 'what must work, works without walls too'
const NOT_AN_ATTACK = 'a refusal has nothing to attack'

/** Of the rows whose control is not plain bwrap without more words. */
export const CONTROLS: Readonly<Record<Row['id'], Control>> = {
  'files.proc-knobs': { words: OWN_PROC },
  'files.proc-masks': { words: OWN_PROC },
  'files.root-read-only': { words: [], bare: true },
  'files.scratch-bounds': { words: ['--tmpfs', '/run', '--tmpfs', '/dev/shm', '--tmpfs', '/home/sandbox'], bare: true },
  'files.setuid-plant': { words: [], only: 'root' },
  'files.owner': { none: 'plain bwrap knows no other owner' },
  'processes.first-untouchable': { words: OWN_PROC },
  'processes.first-says-nothing': { words: OWN_PROC },
  'processes.never-root': { words: [], only: 'root' },
  'processes.debugger': { none: WORKS_ANYWHERE },
  'resources.memory-in-files': { words: [], bare: true },
  'results.no-forging': { none: 'plain bwrap has no result to forge' },
  'results.arguments': { none: WORKS_ANYWHERE },
  'results.bytes': { none: WORKS_ANYWHERE },
  'results.no-mix': { none: WORKS_ANYWHERE },
  'fallbacks.no-engine': { none: NOT_AN_ATTACK },
  'fallbacks.never-unsandboxed': { none: NOT_AN_ATTACK },
  'fallbacks.required-limit': { none: NOT_AN_ATTACK },
}

export const controlOf = ({ id }: Row): Control => CONTROLS[id] ?? { words: [] }

const bareRoot = ({ base }: TestSite): readonly string[] => [
  ...['--ro-bind', '/usr', '/usr', '--symlink', 'usr/lib', '/lib', '--symlink', 'usr/lib64', '/lib64'],
  ...['--symlink', 'usr/bin', '/bin', '--dir', '/etc', '--dir', '/home', '--tmpfs', '/tmp', '--dev', '/dev'],
  ...OWN_PROC,
  ...['--bind', base, base],
]

/** Longer than any control takes that ends. */
const LIMIT_MS = 3_000
const NOTHING = Buffer.alloc(0)

/** Runs attempts in plain bwrap, with one leaked descriptor as any careless caller has it. */
export function plainBwrap({ words, bare = false }: Weakness): Runner {
  return (attempt, site) => {
    const root = bare ? bareRoot(site) : ['--dev-bind', '/', '/']
    return runPlain([...root, ...words, '--', ...attempt.command], attempt)
  }
}

function runPlain(words: readonly string[], { env, stdin }: Attempt): Promise<ObservedRun> {
  // Files: a daemon that was left behind would keep a pipe open.
  const [leaked, out, err] = [openSync('/', 'r'), openUnlinked(NOTHING), openUnlinked(NOTHING)]
  const begun = performance.now()
  const child = spawn('bwrap', words, {
    env: { PATH: process.env.PATH, HOME: '/home/sandbox', ...env },
    stdio: [stdin === undefined ? 'ignore' : 'pipe', out, err, leaked],
  })
  if (stdin !== undefined) child.stdin?.end(stdin)
  const limit = setTimeout(() => child.kill('SIGKILL'), LIMIT_MS)
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('exit', (exitCode, signal) => {
      clearTimeout(limit)
      const [stdout = NOTHING, stderr = NOTHING] = [out, err].map((fd) => readFileSync(`/proc/self/fd/${fd}`))
      for (const fd of [leaked, out, err]) closeSync(fd)
      resolve({
        stdout: stdout.toString(),
        stderr: stderr.toString(),
        stdoutSha256: createHash('sha256').update(stdout).digest('hex'),
        truncated: 0,
        exitCode,
        signal,
        reason: signal === null ? 'exit' : 'signal',
        durationMs: performance.now() - begun,
      })
    })
  })
}

/** Ends what a control left running: every process whose command line names the ground. */
export function endProcessesOf(base: string): void {
  for (const pid of processesWith(base))
    if (readOr(`/proc/${pid}/cmdline`).includes(base)) process.kill(Number(pid), 'SIGKILL')
}
