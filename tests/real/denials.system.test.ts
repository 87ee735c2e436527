/**
 * Every row is a command that a wall stops. What the result says is taken out of it and followed, word by word, and the command succeeds: a
 * denial that names the wrong thing, or a flag that does not help, fails its row.
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import type { Denial } from '../../src/report/result.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { runHere } from './in-process.ts'

interface Row {
  readonly what: string
  readonly flags?: readonly string[]
  readonly script: string
  readonly denial: Partial<Denial>
  /** The fix takes the place of the row's flags. */
  readonly replaces?: boolean
  /** Where the command runs, instead of `work`. */
  readonly at?: string
}

const writes = (what: string, script: string, target: string): Row => ({
  what,
  script,
  denial: { layer: 'mount', operation: 'write', target, fix: '--rw .', key: 'zones' },
})
const guarded = (what: string, script: string, name: string): Row => ({
  what,
  script,
  flags: ['--rw', '.'],
  denial: { layer: 'guard', fix: `--protect-not ${name}`, key: 'protectNot' },
})
const fills = (what: string, directory: string, fix: string): Row => ({
  what,
  script: `dd if=/dev/zero of=${directory}/full bs=1M count=60`,
  denial: { layer: 'limit', operation: 'write', target: directory, fix, evidence: 'sandbox' },
})

const hidden = (what: string, script: string, [target, fix]: readonly [string, string], at = PACKAGE): Row => ({
  what,
  script,
  at,
  denial: { layer: 'mount', operation: 'read', target, fix, evidence: 'stderr' },
})
const closed = (
  what: string,
  flags: readonly string[],
  [script, target, fix]: readonly [string, string, string],
): Row => ({
  what,
  flags,
  script,
  denial: { layer: 'mount', operation: 'create', target: `${target} (socket or FIFO)`, fix, key: 'zones' },
  replaces: true,
})
const BIND = `python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'`

/** A package of a project with several. */
const PACKAGE = 'mono/packages/a'

const LED_OUT = (place: string): readonly Row[] => [
  hidden('a name that climbs out', 'cat ../../base.json', [`${place}/mono/base.json`, `--ro ${place}/mono`]),
  hidden('a name that a program has climbed', 'node climb.js', [`${place}/mono/base.json`, `--ro ${place}/mono`]),
  hidden('a module above the package', 'node module.js', [`${place}/mono/node_modules/dep`, `--ro ${place}/mono`]),
  hidden('a link to a directory elsewhere', 'cat far/data', [`${place}/library`, `--ro ${place}/library`]),
  hidden('a relative link out of the project', 'cat near', [
    `${place}/library/data`,
    `--same-path --ro ${place}/library/data`,
  ]),
  {
    ...hidden('the same, from a zone that was named', 'cat ../../base.json >made', [
      `${place}/mono/base.json`,
      `--rw ${place}/mono --workdir ${place}/mono/packages/a`,
    ]),
    flags: ['--rw', '.'],
  },
  hidden('a script that names its interpreter in the project', './tool', [`${place}/${PACKAGE}/bin/sh`, '--same-path']),
]

const SOCKETS = (place: string): readonly Row[] => [
  closed('a socket in a writable zone', ['--rw', '.'], [BIND, '/workspace', `--rw ${place}/work:/workspace:sockets`]),
  closed(
    'a FIFO in a writable zone',
    ['--rw', '.'],
    ['mkfifo f', '/workspace/f', `--rw ${place}/work:/workspace:sockets`],
  ),
  closed(
    'a FIFO in the scratch above a writable zone',
    ['--rw', '.:/tmp/in/work'],
    ['mkfifo /tmp/f', '/tmp/f', `--rw ${place}/work:/tmp/in/work:sockets`],
  ),
]

const ROWS = (place: string): readonly Row[] => [
  ...LED_OUT(place),
  ...SOCKETS(place),
  writes('a redirection of the shell', 'echo 1 > made', '/workspace/made'),
  writes('python', `python3 -c 'open("made", "w")'`, '/workspace/made'),
  writes('git', 'git -C repository commit -q --allow-empty -m x', '/workspace/repository/.git/index.lock'),
  {
    what: 'a read-only zone beside the workspace',
    flags: ['--ro', `${place}/library:/library`],
    script: 'touch /library/made',
    denial: { operation: 'write', target: '/library/made', fix: `--rw ${place}/library:/library` },
    replaces: true,
  },
  {
    what: 'a directory that the sandbox makes',
    flags: ['--ro', `${place}/library:/opt/library`],
    script: 'mkdir /opt/made',
    denial: { operation: 'write', target: '/opt/made', fix: '--tmpfs /opt' },
  },
  guarded('a settings directory', 'mkdir .vscode', '.vscode'),
  guarded('git init', 'git init -q .', '.git'),
  guarded(
    'git worktree add',
    // The first run may be stopped halfway, with the directory made.
    'rm -rf linked; cd repository; git worktree prune; git commit -q --allow-empty -m x; git worktree add -q --detach ../linked',
    '.git',
  ),
  guarded('a hook', 'touch repository/.git/hooks/pre-commit', '.git/hooks'),
  fills('a full /tmp', '/tmp', '--tmp 100m'),
  {
    what: 'a full directory that was asked for',
    flags: ['--tmpfs', '/cache:1m'],
    script: 'dd if=/dev/zero of=/cache/full bs=64k count=20',
    denial: { operation: 'write', target: '/cache', fix: '--tmpfs /cache:2m', key: 'zones' },
    replaces: true,
  },
  {
    what: 'namespaces of its own',
    script: 'unshare --user --map-root-user true',
    denial: { layer: 'seccomp', operation: 'syscall', fix: '--seccomp nested', key: 'seccomp', evidence: 'stderr' },
  },
  {
    what: 'a tracer',
    flags: ['--seccomp', 'strict'],
    script: 'strace -o /dev/null true',
    denial: { layer: 'seccomp', target: 'ptrace', fix: '--seccomp default' },
    replaces: true,
  },
  {
    what: 'a file of the host',
    script: `cat ${place}/library/data`,
    denial: { operation: 'read', target: `${place}/library/data`, fix: `--ro ${place}/library/data`, key: 'zones' },
  },
  {
    what: 'the path of the workspace on the host',
    script: `cat ${place}/work/main.c`,
    denial: { operation: 'read', target: `${place}/work/main.c`, fix: '--same-path', key: 'samePath' },
  },
  {
    what: 'memory',
    flags: ['--memory', '48m'],
    script: `python3 -c 'import time; held = b"x" * (60 << 20); time.sleep(1)'`,
    denial: { layer: 'limit', operation: 'allocate', target: 'memory', fix: '--memory 96m', key: 'resources.memory' },
  },
]

const MAKE = `
  mkdir -p mono/packages/a mono/node_modules/dep python; cd mono
  echo '{ "workspaces": ["packages/*"] }' >package.json; echo '{}' >base.json; echo >node_modules/dep/index.js
  cd packages/a; echo 'require("../../base.json")' >climb.js; echo 'require("dep")' >module.js
  mkdir bin; cp /bin/sh bin; printf '#!%s\\necho here\\n' "$PWD/bin/sh" >tool; chmod +x tool
  ln -s "$(realpath ../../../library)" far; ln -s ../../../library/data near
  cd ../../../python; python3 -m venv --without-pip .venv
  touch "$(echo .venv/lib/python3*/site-packages)/inside.py"
  printf '#!%s\\nimport inside\\n' "$PWD/.venv/bin/python3" >.venv/bin/tool; chmod +x .venv/bin/tool`

/** `work` is where the command runs, `library` lies next to it. */
async function makePlace(): Promise<string> {
  const place = await temporaryDirectory()
  await mkdir(join(place, 'work/sub'), { recursive: true })
  await mkdir(join(place, 'library'))
  await writeFile(join(place, 'library/data'), 'data\n')
  await writeFile(join(place, 'work/main.c'), 'int main(void) { return 0; }\n')
  await execa('git', ['init', '-q', join(place, 'work/repository')])
  await execa('sh', ['-ec', MAKE], { cwd: place })
  return place
}

const IDENTITY = ['AUTHOR', 'COMMITTER'].flatMap((who) => [`--env=GIT_${who}_NAME=a`, `--env=GIT_${who}_EMAIL=a@b.c`])

describeWith(['userns', 'git', 'python', 'strace'], 'a denial that is followed lets the command succeed', () => {
  test.each(ROWS('PLACE').map(({ what }, at) => [what, at] as const))('%s', async (_, at) => {
    const place = await makePlace()
    const { flags = [], script, denial, replaces = false, at: directory = 'work' } = ROWS(place)[at] as Row
    const run = (...words: readonly string[]) =>
      runHere([...IDENTITY, ...words, '-c', script], { cwd: join(place, directory), env: { HOME: place } })
    const refused = await run(...flags)
    expect(refused.ok).toBe(false)
    expect(refused.denials).toContainEqual(expect.objectContaining(denial))
    const fix = refused.denials.find((one) => one.fix === denial.fix)?.fix.split(' ') ?? []
    const { ok, denials, stderr } = await run(...(replaces ? [] : flags), ...fix)
    expect({ ok, denials, stderr }).toMatchObject({ ok: true, denials: [] })
  })
})

describeWith(['userns', 'python'], 'nothing is denied', () => {
  test.each([
    ['a script of a virtual environment', '.venv/bin/tool && echo here'],
    ['python, activated', '. .venv/bin/activate; python -c "import inside" && echo here'],
    ['a program of an environment, activated', '. .venv/bin/activate; tool && echo here'],
    ['the environment of a writable directory', '. .venv/bin/activate; tool && echo here >made; cat made', '--rw', '.'],
  ])('to %s', async (_, script, ...flags) => {
    const place = await makePlace()
    const { ok, stdout, denials } = await runHere([...flags, '-lc', script], {
      cwd: join(place, 'python'),
      env: { HOME: place },
    })
    expect({ ok, stdout, denials }).toEqual({ ok: true, stdout: 'here\n', denials: [] })
  })

  test.each([
    ['a search without a match', 'grep nomatch main.c'],
    ['a name that the host does not have either', 'cat nosuch ../nosuch /nosuch'],
    ['a file without rights', 'cat closed; exit 1'],
  ])('by %s', async (_, script) => {
    const place = await makePlace()
    await writeFile(join(place, 'work/closed'), '', { mode: 0 })
    const { ok, denials, hints } = await runHere(['-c', script], { cwd: join(place, 'work'), env: { HOME: place } })
    expect({ ok, denials, hints }).toEqual({ ok: false, denials: [], hints: [] })
  })

  test('to sockets and FIFOs in TMPDIR where a writable zone lies below /tmp', async () => {
    const place = await makePlace()
    const script = `cd "$TMPDIR"; pwd; mkfifo f && ${BIND} && test "$TMUX_TMPDIR" = "$TMPDIR"`
    const { ok, stdout, denials } = await runHere(['--rw', '.:/tmp/in/work', '-c', script], {
      cwd: join(place, 'work'),
    })
    expect({ ok, stdout, denials }).toEqual({ ok: true, stdout: '/var/tmp\n', denials: [] })
  })

  test('to sockets and FIFOs of the scratch above a read-only zone', async () => {
    const place = await makePlace()
    const script = `cd /tmp; mkfifo f; ${BIND}; cd in/library; mkfifo f`
    const { stderr } = await runHere(['--ro', `${place}/library:/tmp/in/library`, '-c', script], {
      cwd: join(place, 'work'),
    })
    expect(stderr).toBe("mkfifo: cannot create fifo 'f': Read-only file system\n")
  })
})
