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

const ROWS = (place: string): readonly Row[] => [
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

/** `work` is where the command runs, `library` lies next to it. */
async function makePlace(): Promise<string> {
  const place = await temporaryDirectory()
  await mkdir(join(place, 'work/sub'), { recursive: true })
  await mkdir(join(place, 'library'))
  await writeFile(join(place, 'library/data'), 'data\n')
  await writeFile(join(place, 'work/main.c'), 'int main(void) { return 0; }\n')
  await execa('git', ['init', '-q', join(place, 'work/repository')])
  return place
}

const IDENTITY = ['AUTHOR', 'COMMITTER'].flatMap((who) => [`--env=GIT_${who}_NAME=a`, `--env=GIT_${who}_EMAIL=a@b.c`])

describeWith(['userns', 'git', 'python', 'strace'], 'a denial that is followed lets the command succeed', () => {
  test.each(ROWS('PLACE').map(({ what }, at) => [what, at] as const))('%s', async (_, at) => {
    const place = await makePlace()
    const { flags = [], script, denial, replaces = false } = ROWS(place)[at] as Row
    const run = (...words: readonly string[]) =>
      runHere([...IDENTITY, ...words, '-c', script], { cwd: join(place, 'work'), env: { HOME: place } })
    const refused = await run(...flags)
    expect(refused.ok).toBe(false)
    expect(refused.denials).toContainEqual(expect.objectContaining(denial))
    const fix = refused.denials.find((one) => one.fix === denial.fix)?.fix.split(' ') ?? []
    const { ok, denials, stderr } = await run(...(replaces ? [] : flags), ...fix)
    expect({ ok, denials, stderr }).toMatchObject({ ok: true, denials: [] })
  })
})
