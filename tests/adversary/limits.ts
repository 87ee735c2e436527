/** Quotas of the caller and of the host that a command takes, and trees too large or too deep for a look at all of them. */
import { spawnSync } from 'node:child_process'
import { type Attack, isNamespace } from './attack.ts'
import { byGit, evilConfig, write } from './git.ts'

const python = (program: string): string => `python3 -c '\n${program}'`

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
    ...byGit('guard.flooded'),
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
