/** Quotas of the caller and of the host that a command takes, and trees too large or too deep for a look at all of them. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { PLAIN_ID } from '../support/users.ts'
import { type Attack, isNamespace } from './attack.ts'
import { evilConfig, write } from './git.ts'
import { wasRun } from './world.ts'

const python = (program: string): string => `python3 -c '\n${program}'`

/** Takes what the kernel gives; all of it is free again when it ends. */
const TAKE = python(`
import ctypes, os, signal
libc = ctypes.CDLL(None)
class Value(ctypes.Union): _fields_ = [("number", ctypes.c_int), ("pointer", ctypes.c_void_p)]
signal.pthread_sigmask(signal.SIG_BLOCK, [40])
def count(take, most):
    return next((taken for taken in range(most) if take() < 0), most)
print("INOTIFY", count(lambda: libc.inotify_init1(0), 100000))
print("SIGNALS", count(lambda: libc.sigqueue(os.getpid(), 40, Value()), 20000))
`)

const instancesOfUser = (): number => Number(readFileSync('/proc/sys/fs/inotify/max_user_instances', 'utf8'))
const printedNumber = (text: string, name: string): number => Number(new RegExp(`${name} (\\d+)`).exec(text)?.[1] ?? 0)

/** More names than a walk before a run accepts; most are hard links, which a disk makes faster than files. */
const FLOOD = python(`
import os
os.mkdir("flood")
for n in range(1000100):
    if n % 60000 == 0:
        base = "flood/%d" % n
        open(base, "w").close()
    else: os.link(base, "flood/%d" % n)
`)

const LEVELS = 1500
/** Goes down a tree whose paths are longer than the kernel takes. */
const DOWN = `import os\nfor level in range(${LEVELS}):\n    os.path.exists("aaa") or os.mkdir("aaa")\n    os.chdir("aaa")\n`
const MAKE_DEEP = `echo attack begun; ${python(`${DOWN}open("end", "w")\n`)}`

export const LIMIT_ATTACKS: readonly Attack[] = [
  {
    id: 'limits.zone-filled',
    of: 'files of the host',
    sentence: 'A zone whose growth is limited is filled with a file that has lost its name.',
    on: isNamespace,
    attempt: async ({ world, inside }) => {
      const fill = `exec 3>${world.zone}/fill; rm ${world.zone}/fill; head -c 32m /dev/zero >&3; sleep 5; echo FILLED`
      await inside(fill, { options: ['--rw-size', '8m'] })
    },
    harmed: ({ printed }) => (printed.includes('FILLED') ? 'the disk was filled' : undefined),
    control: 'bare',
  },
  {
    id: 'quotas.taken',
    of: 'third review, finding 10',
    sentence:
      'The inotify instances and pending signals of the caller are taken, which the programs of the caller then lack.',
    // By bwrap, root's command counts as the id that it has: no program of the caller lacks what it takes.
    on: (cell) => isNamespace(cell) && (cell.user === 'plain' || cell.backend === 'unshare'),
    script: () => TAKE,
    harmed: ({ printed }) => {
      const [instances, signals] = [printedNumber(printed, 'INOTIFY'), printedNumber(printed, 'SIGNALS')]
      if (instances > instancesOfUser() / 2) return `${instances} inotify instances of the caller were taken`
      return signals > 4096 ? `${signals} pending signals of the caller were taken` : undefined
    },
    // A user whom no other test runs as: its programs would lack what is taken.
    control: async (stage) => {
      const as = [`--reuid=${PLAIN_ID - 50}`, `--regid=${PLAIN_ID - 50}`, '--clear-groups']
      await stage.command(['--', 'setpriv', ...as, 'sh', '-c', TAKE])
    },
    controlAs: 'root',
  },
  {
    id: 'limits.affinity',
    of: 'third review, finding 12',
    sentence: 'A command whose processors are held by affinity takes the others back.',
    on: isNamespace,
    attempt: async (stage) => {
      const options = ['--cpus', '1']
      await stage.inside('taskset -p -c 0-1023 $$ >/dev/null; echo "PROCESSORS $(nproc)"', { opened: true, options })
      if (!stage.isControl) await stage.inside('true', { opened: true, options: [...options, '--json'] })
    },
    // The kernel's own quota leaves processors alone: the second run says what holds the limit.
    harmed: ({ printed }) =>
      printedNumber(printed, 'PROCESSORS') > 1 && !/"cpus":\{"max":1,"by":"(?!affinity)/.test(printed)
        ? 'the command has more than the one processor'
        : undefined,
    control: 'bare',
  },
  {
    id: 'guard.flooded',
    of: 'third review, finding 13',
    sentence: 'A repository is made in a zone behind more names than a walk before a run accepts.',
    on: (cell) => isNamespace(cell) && cell.filter === 'default',
    isDeep: true,
    attempt: async (stage) => {
      const { cwd } = stage.world
      const inner = 'z/y/x/app'
      await stage.inside(
        `cd ${cwd}; ${FLOOD}; mkdir -p ${inner} r/objects r/refs; echo 'ref: refs/heads/x' >r/HEAD
        ${write('r/config', evilConfig(stage.world, 'guard.flooded'))}; mv r ${inner}/.git`,
        { options: ['--zone', `fresh=${cwd}:${cwd}:rw`, '--timeout', '5m'], limitMs: 400_000 },
      )
      await stage.host(['git', 'status', '--short'], { cwd: `${cwd}/${inner}` })
    },
    harmed: ({ world }) => (wasRun(world, 'guard.flooded') ? 'git ran the program of the sandbox' : undefined),
    control: { none: 'git.new-repository-below shows what git does there; the names are only many' },
  },
  {
    id: 'layers.deep',
    of: 'third review, finding 14',
    sentence: 'A command makes directories so deep that no one can list or apply what it has changed.',
    // nested refuses a zone with protected names.
    on: (cell) => isNamespace(cell) && cell.filter !== 'nested',
    attempt: async ({ command, options, world: { cwd } }) => {
      await command([...options, '--cow', '.', '--apply', 'on-success', '--', '/bin/sh', '-c', MAKE_DEEP], { cwd })
    },
    harmed: ({ world: { cwd } }) =>
      spawnSync('python3', ['-c', `${DOWN}os.stat("end")`], { cwd }).status === 0
        ? undefined
        : 'what the command made is not applied',
    // A program that goes by whole paths.
    control: async ({ command, world: { cwd } }) => {
      const script = `mkdir layer; cd layer; ${MAKE_DEEP}; cd ..; cp -R layer/. .`
      await command(['--', '/bin/sh', '-c', script], { cwd })
    },
  },
]
