/** Protected paths: what exists cannot be changed, what does not exist cannot be made, and the host sees nothing of it. */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, watch, writeFileSync } from 'node:fs'
import { appendFile, chmod, mkdir, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { execa } from 'execa'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Outcome } from '../../src/backends/outcome.ts'
import { cliWords, runCli } from '../support/cli.ts'
import { newDirectory, temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { commOf, descendantsOf, until } from '../support/processes.ts'
import { PLAIN_ID } from '../support/users.ts'
import { makeTestSite, sh, type TestSite } from './chain.ts'
import { planOnce, supervised } from './launch.ts'
import { unguarded } from './unguarded.ts'

const GIT_ENV = {
  HOME: '/nowhere',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_AUTHOR_NAME: 'a',
  GIT_AUTHOR_EMAIL: 'a@example.org',
  GIT_COMMITTER_NAME: 'a',
  GIT_COMMITTER_EMAIL: 'a@example.org',
}

const git = (directory: string, ...words: readonly string[]) =>
  execa('git', ['-c', 'protocol.file.allow=always', ...words], { cwd: directory, env: GIT_ENV })

async function commit(directory: string): Promise<void> {
  await writeFile(join(directory, 'file'), 'one\n')
  await git(directory, 'add', 'file')
  await git(directory, 'commit', '-qm', 'one')
}

/** A repository in the zone, with a submodule and two linked worktrees. */
async function makeRepository({ zone }: TestSite): Promise<void> {
  for (const name of ['library', 'app']) {
    await mkdir(join(zone, name))
    await git(join(zone, name), 'init', '-q', '-b', 'main')
    await commit(join(zone, name))
  }
  const app = join(zone, 'app')
  await git(app, 'submodule', '--quiet', 'add', join(zone, 'library'), 'vendor/sub')
  await git(app, 'commit', '-qm', 'sub')
  await git(app, 'worktree', 'add', '-q', '-b', 'beside', join(zone, 'beside'))
}

interface Attempt {
  readonly site: TestSite
  readonly script: string
  readonly guarded?: boolean
}

async function attempt({ site, script, guarded = true }: Attempt): Promise<Outcome> {
  const values = { protect: ['.config/fish/config.fish'] }
  const planned = await planOnce({ site, engine: 'unshare', command: sh(script), values })
  const launch = planned.launch()
  return supervised(guarded ? launch : unguarded(launch))
}

const printed = ({ stdout }: Pick<Outcome, 'stdout'>): readonly string[] =>
  Buffer.from(stdout.head).toString().split('\n').filter(Boolean)

const namesIn = (directory: string): readonly string[] => readdirSync(directory).sort()

const REPOSITORY_AT_ROOT =
  'echo ref: refs/heads/main >HEAD; mkdir objects refs; printf "[core]\\nworktree = .\\n" >config'

/**
 * Scripts that make a protected name in a zone that holds only `notes`; the contract's row files.protected and the rows of
 * tests/adversary/git.ts have more. A command that `ends` is over before it could be stopped.
 */
const ATTEMPTS: readonly { readonly name: string; readonly script: string; readonly ends?: true }[] = [
  { name: '.mcp.json', script: 'echo evil >.mcp.json', ends: true },
  { name: '.vscode', script: 'mkdir x; echo evil >x/tasks.json; mv x .vscode' },
  { name: '.config/fish/config.fish', script: 'mkdir -p .config/fish; echo evil >.config/fish/config.fish' },
  { name: '.config/fish/config.fish', script: 'mkdir -p x/fish; echo evil >x/fish/config.fish; mv x .config' },
  { name: '.config', script: 'mkdir x; ln -s x .config' },
  { name: 'a/b/c/d/.git', script: 'mkdir -p a/b/c/d; cd a/b/c/d; mkdir .git' },
  { name: 'a/.git', script: 'mkdir a; echo gitdir: ../evil >a/.git' },
  { name: 'a/.git', script: 'mkdir a; ln -s ../evil a/.git', ends: true },
  { name: 'a/b/HEAD', script: `mkdir -p a/b; cd a/b; ${REPOSITORY_AT_ROOT}`, ends: true },
  { name: 'HEAD', script: 'echo ref: refs/heads/main >HEAD; echo evil >commondir' },
]

describeWith(['git', 'userns'], 'in a directory without a repository', () => {
  test.each(ATTEMPTS)('a command that makes $name by "$script" is stopped', async ({ name, script, ends }) => {
    const site = await makeTestSite()
    const outcome = await attempt({ site, script: `cd /zone; ${script}${ends ? '' : '; sleep 20'}` })
    expect(outcome.reason).toBe('protected')
    const [made] = outcome.guarded?.attempts.first ?? []
    expect(made?.path).toBe(join(site.zone, name))
    expect(existsSync(join(site.zone, name))).toBe(false)
    expect(readdirSync(join(site.zone, dirname(name)))).toContain(made?.aside)
  })

  test('control: without the protection each of them makes its name', async () => {
    const script = ATTEMPTS.map(
      ({ name, script }, at) => `mkdir /zone/${at}; cd /zone/${at}; ${script}; ls -d /zone/${at}/${name}`,
    )
    const { stdout } = await attempt({ site: await makeTestSite(), script: script.join('\n'), guarded: false })
    expect(printed({ stdout })).toEqual(ATTEMPTS.map(({ name }, at) => `/zone/${at}/${name}`))
  })

  test('directories on the way to protected names can be made, and nothing else is there after the run', async () => {
    const site = await makeTestSite()
    const outcome = await attempt({
      site,
      script: 'cd /zone; ls -A >seen; mkdir .config .config/x; echo x >.config/y',
    })
    expect([outcome.reason, outcome.exitCode]).toEqual(['exit', 0])
    expect(readFileSync(join(site.zone, 'seen'), 'utf8')).toBe('notes\nseen\n')
    expect(namesIn(site.zone)).toEqual(['.config', 'notes', 'seen'])
    expect(namesIn(join(site.zone, '.config'))).toEqual(['x', 'y'])
  })

  test('a program that watches the directory sees nothing of a run', async () => {
    const site = await makeTestSite()
    const seen: (string | null)[] = []
    const watcher = watch(site.zone, (_, name) => seen.push(name))
    try {
      expect((await attempt({ site, script: 'ls -A /zone' })).exitCode).toBe(0)
      await appendFile(join(site.zone, 'notes'), 'control\n')
      await expect.poll(() => seen).not.toEqual([])
    } finally {
      watcher.close()
    }
    expect(new Set(seen)).toEqual(new Set(['notes']))
  })

  test('a file that the host puts in the place of a covered one ends the run, and is set aside', async () => {
    const site = await makeTestSite()
    const at = (name: string) => join(site.zone, name)
    await writeFile(at('.npmrc'), 'old\n')
    const script =
      'cd /zone; touch begun; until grep -q written .npmrc; do :; done; touch read; until grep -q new .npmrc; do :; done'
    // Long after that: a million turns.
    const late = 'i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done; touch late'
    const running = attempt({ site, script: `${script}; ${late}` })
    await until('the command', () => existsSync(at('begun')) || undefined)
    // Control: what is written in place stays covered.
    await writeFile(at('.npmrc'), 'written in place\n')
    await until('its look', () => existsSync(at('read')) || undefined)
    await writeFile(at('new'), 'new\n')
    await rename(at('new'), at('.npmrc'))
    const { reason, guarded } = await running
    const [replaced] = guarded?.attempts.first ?? []
    expect([reason, replaced?.path, existsSync(at('.npmrc'))]).toEqual(['protected', at('.npmrc'), false])
    expect(existsSync(at('late'))).toBe(false)
    expect(readFileSync(at(replaced?.aside ?? 'nothing'), 'utf8')).toBe('new\n')
  })

  test('every process of the command is dead when what it made is set aside', async () => {
    const site = await makeTestSite()
    const again =
      '(while :; do mkdir /zone/.idea 2>/dev/null; done) & (while :; do mkdir /zone/.git 2>/dev/null; done) & sleep 20'
    const outcome = await attempt({ site, script: again })
    expect(outcome.reason).toBe('protected')
    expect(namesIn(site.zone).filter((name) => !name.includes('.set-aside.'))).toEqual(['notes'])
  })
})

describeWith(['git', 'userns'], 'in a repository with a submodule and a worktree', () => {
  const CHANGES = `app/.git/config app/.git/hooks/pre-commit app/.git/modules/vendor/sub/config
    app/.git/modules/vendor/sub/hooks/post-checkout app/.git/modules/other app/.git/worktrees/beside/commondir
    app/.git/worktrees/beside/gitdir app/.git/worktrees/other app/vendor/sub/.git beside/.git
    library/.git/config`.split(/\s+/)
  const NEW = `app/.git/commondir app/.git/config.worktree app/.git/info/attributes app/.git/objects/info/alternates
    app/.git/modules/vendor/sub/commondir app/.git/worktrees/beside/config.worktree library/.git/modules
    library/.git/worktrees app/vendor/sub/x/.git`.split(/\s+/)
  const MOVES = `app app/.git app/.git/hooks app/.git/modules app/.git/modules/vendor app/.git/worktrees app/vendor
    app/vendor/sub`.split(/\s+/)

  const plant = (paths: readonly string[]) =>
    `cd /zone; for path in ${paths.join(' ')}; do mkdir -p "$(dirname $path)"; echo evil >>$path && echo "$path"; done 2>/dev/null; true`
  // mv copies a mount point, and the run is stopped for the copy.
  const move = `cd /zone; rm -rf evil; for path in ${MOVES.join(' ')}; do mv $path evil && echo "$path" && mv evil $path; done 2>/dev/null; true`
  /** One repository for all: what is protected is there after each. */
  const made: { site?: TestSite; remove?: () => Promise<void> } = {}
  const place = (): TestSite => made.site as TestSite
  beforeAll(async () => {
    const { path, remove } = await newDirectory({ mode: 0o755 })
    made.remove = remove
    made.site = await makeTestSite(path)
    await makeRepository(place())
  })
  afterAll(() => made.remove?.())

  test('what git runs or obeys can be neither changed nor moved away', async () => {
    const script = `(${plant(CHANGES)})\n${move}`
    expect(printed(await attempt({ site: place(), script }))).toEqual([])
  })

  test.each(NEW)('%s cannot be made', async (path) => {
    const outcome = await attempt({ site: place(), script: `${plant([path])}; sleep 20` })
    expect(outcome.reason).toBe('protected')
    expect(outcome.guarded?.attempts.first[0]?.path).toBe(join(place().zone, path))
    expect(existsSync(join(place().zone, path))).toBe(false)
  })

  test('everyday git goes on working: commit, branch, rebase, merge, stash, tag, gc', {
    timeout: 60_000,
  }, async () => {
    // A repository that no attack has been at: mv removes what is not protected, until its run is stopped.
    const site = await makeTestSite()
    await makeRepository(site)
    const everyday = [
      'set -e',
      `export ${Object.entries(GIT_ENV)
        .map(([name, value]) => `${name}=${value}`)
        .join(' ')}`,
      `for d in app app/vendor/sub beside library; do cd ${site.zone}/$d`,
      'b=$(git symbolic-ref --short HEAD || { git checkout -qB work; echo work; })',
      'echo 1 >>file; git add file; git commit -qm one; echo 2 >>file; git commit -qam two',
      'git branch side-$b; git checkout -q side-$b; echo s >g; git add g; git commit -qm side',
      'git checkout -q $b; echo 3 >h; git add h; git commit -qm three',
      'git checkout -q side-$b; git rebase -q $b; git checkout -q $b; git merge -q side-$b',
      'echo x >>file; git stash -q; git stash pop -q; git commit -qam pop; git tag t-$b; git tag -a a-$b -m a',
      'git gc -q; git repack -adq; git fsck --no-dangling; git tag -d t-$b a-$b >/dev/null; git reset -q --hard HEAD~1',
      'done',
    ].join('\n')
    const planned = await planOnce({
      site,
      engine: 'unshare',
      command: sh(everyday),
      values: {
        zones: [{ name: 'zone', mode: 'rw', hostPath: site.zone, target: site.zone }],
        resources: { timeout: '50s' },
      },
    })
    const { outcome } = await planned.run()
    const stderr = Buffer.concat([outcome.stderr.head, outcome.stderr.tail]).toString()
    expect([outcome.reason, outcome.exitCode, stderr]).toEqual(['exit', 0, ''])
  })

  test('control: without the protection all of it can be moved, changed and made', async () => {
    const script = `(${move})\n${plant([...CHANGES, ...NEW])}`
    const outcome = await attempt({ site: place(), script, guarded: false })
    expect(printed(outcome)).toEqual([...MOVES, ...CHANGES, ...NEW])
  })
})

describeWith(['root', 'gcc', 'userns'], 'files of root that run with its rights', () => {
  /** Writes through a shared mapping, which does not drop the set-id bit as write(2) does. */
  const MAPPED = `
    #include <fcntl.h>
    #include <string.h>
    #include <sys/mman.h>
    int main(int argc, char **argv) {
      int fd = open(argv[argc - 1], O_RDWR);
      char *at = fd < 0 ? MAP_FAILED : mmap(0, 4, PROT_WRITE, MAP_SHARED, fd, 0);
      if (at == MAP_FAILED) return 1;
      memcpy(at, "evil", 4);
      return 0;
    }`

  async function prepare(): Promise<TestSite> {
    const site = await makeTestSite()
    await writeFile(join(site.base, 'mapped.c'), MAPPED)
    await execa('gcc', ['-o', join(site.zone, 'mapped'), join(site.base, 'mapped.c')])
    for (const name of ['set-id', 'capable', 'ordinary']) await writeFile(join(site.zone, name), 'host')
    await mkdir(join(site.zone, '.git/objects/x'), { recursive: true })
    await writeFile(join(site.zone, '.git/objects/x/hidden'), 'host')
    for (const name of ['set-id', '.git/objects/x/hidden']) await chmod(join(site.zone, name), 0o4755)
    await execa('setcap', ['cap_dac_override+ep', join(site.zone, 'capable')])
    return site
  }

  const FILES = ['set-id', 'capable', '.git/objects/x/hidden', 'ordinary']
  const script = `cd /zone; for name in ${FILES.join(' ')}; do ./mapped $name; done 2>/dev/null; true`
  const contents = ({ zone }: TestSite) => FILES.map((name) => readFileSync(join(zone, name), 'utf8'))

  test('cannot be written, not through a mapping either, and a warning names them', async () => {
    const site = await prepare()
    const outcome = await attempt({ site, script })
    expect(contents(site)).toEqual(['host', 'host', 'host', 'evil'])
    expect(outcome.guarded?.setId.count).toBe(3)
    expect(outcome.guarded?.setId.first).toContain(join(site.zone, 'capable'))
  })

  test.each(['set-id', 'capable'])('%s cannot be a writable zone by itself', async (name) => {
    const { zone, base } = await prepare()
    const run = (file: string) =>
      runCli(
        ['--rw', `${join(zone, file)}:/data/file`, '--ro', `${zone}:/programs`, '--', '/programs/mapped', '/data/file'],
        { cwd: base },
      )
    const refused = await run(name)
    expect(refused.status).toBe(125)
    expect(refused.stderr.toString()).toContain(`${join(zone, name)} runs with other rights than its caller's`)
    expect(readFileSync(join(zone, name), 'utf8')).toBe('host')
    // The control: an ordinary file is written by the same words.
    expect((await run('ordinary')).status).toBe(0)
    expect(readFileSync(join(zone, 'ordinary'), 'utf8')).toBe('evil')
  })

  test('control: what plain bwrap lets be written keeps its bit', async () => {
    const site = await prepare()
    await execa('bwrap', ['--ro-bind', '/', '/', '--bind', site.zone, '/mnt', '/mnt/mapped', '/mnt/set-id'])
    expect(contents(site)).toEqual(['evil', 'host', 'host', 'host'])
    expect(statSync(join(site.zone, 'set-id')).mode & 0o7777).toBe(0o4755)
  })
})

describeWith(['git', 'userns'], 'what needs the closed parts of git', () => {
  async function makeCaller() {
    const { zone } = await makeTestSite()
    const home = await temporaryDirectory()
    await execa('git', ['init', '-q', zone])
    return { zone, env: { HOME: home, XDG_RUNTIME_DIR: home } }
  }

  test('names its flag, also by a command that is over at once and has a plan already', async () => {
    const { zone, env } = await makeCaller()
    const git = (...flags: readonly string[]) =>
      runCli(['--rw', '.', ...flags, '--', 'git', 'config', 'user.name', 'x'], { cwd: zone, env })
    for (const run of [await git(), await git()]) {
      expect(run.status).not.toBe(0)
      expect(run.stderr.toString()).toContain('--protect-not .git/config')
    }
    expect((await git('--protect-not', '.git')).status).toBe(0)
  })

  test('names its flag when the launcher gets to its work only after the command is over', async () => {
    const { zone, env } = await makeCaller()
    const script =
      'echo $$ >begun; until [ -e go ]; do sleep 0.02; done; git config user.name x || { touch over; exit 1; }'
    const [file = '', ...words] = cliWords(['--rw', '.', '--', 'sh', '-c', script])
    const run = execa(file, words, {
      cwd: zone,
      env: { PATH: process.env.PATH, ...env },
      extendEnv: false,
      reject: false,
    })
    const isThere = (name: string) => () => existsSync(join(zone, name)) || undefined
    await until('the command', isThere('begun'))
    const shellsOf = (pid: number) => descendantsOf(pid).filter((below) => commOf(below) === 'sh')
    // Not the sweeper, which has the same name.
    const launcher = await until('a launcher', () =>
      descendantsOf(run.pid ?? 0).find((pid) => commOf(pid) === 'launch' && shellsOf(pid).length > 0),
    )
    process.kill(launcher, 'SIGSTOP')
    const shells = shellsOf(launcher)
    await writeFile(join(zone, 'go'), '')
    await until('the refusal', isThere('over'))
    await until('the end of the command', () => shells.every((pid) => commOf(pid) !== 'sh') || undefined)
    process.kill(launcher, 'SIGCONT')
    expect(await run).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('--protect-not .git/config') })
  })
})

/* Names that are protected unless the policy opens them: the result reports how a run changed them. */
const CHANGED = [expect.stringContaining('tasks.json, which Visual Studio Code may run or obey')]

describeWith('userns', 'an opened name', () => {
  test.each([
    ['is reported when it was changed', 'echo x >>.vscode/tasks.json', CHANGED],
    ['is not reported when it was read', 'cat .vscode/tasks.json', []],
  ])('%s', async (_, script, expected) => {
    const cwd = await temporaryDirectory({ mode: 0o755 })
    mkdirSync(join(cwd, '.vscode'))
    writeFileSync(join(cwd, '.vscode', 'tasks.json'), 'host\n')
    const words = ['--json', '--rw', '.', '--protect-not', '.vscode', '--', 'sh', '-c', script]
    // The second run has the plan of the first one, and must report the same.
    const runs = [await runCli(words, { cwd }), await runCli(words, { cwd })]
    const warnings = runs.map(({ stdout }) => (JSON.parse(`${stdout}`) as { warnings: string[] }).warnings)
    expect(warnings).toEqual([expected, expected])
  })
})

/** An overlay of two file systems: the copy of a file that came from the lower one keeps its number there under its first name alone. */
const COPIED_UP = `
mkdir top merged && mount -t tmpfs none top && mkdir top/upper top/work
mkdir -p lower/.git/hooks lower/.git/objects lower/.git/refs
echo ref: refs/heads/main >lower/.git/HEAD
echo >lower/.git/hooks/pre-commit
chown -R ${PLAIN_ID} lower top/upper
mount -t overlay -o lowerdir=lower,upperdir=top/upper,workdir=top/work,xino=off none merged && cd merged || exit 9
echo copied >>.git/hooks/pre-commit
ln .git/hooks/pre-commit other
"$@"
cat .git/hooks/pre-commit
`

describeWith(['root', 'userns'], 'a protected file of an overlay that has no numbers of its own for files', () => {
  const writeByOtherName = async (...flags: readonly string[]) => {
    const through = ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', COPIED_UP, 'sh']
    const words = ['--rw', '.', ...flags, '--', 'sh', '-c', 'echo by another name >>other']
    const { stdout } = await runCli(words, { through, cwd: await temporaryDirectory({ mode: 0o755 }) })
    return stdout.toString()
  }

  test('cannot be written by another name', async () => {
    expect(await writeByOtherName()).toBe('\ncopied\n')
  })

  test('control: it is, where it is not protected', async () => {
    expect(await writeByOtherName('--protect-not', '.git')).toBe('\ncopied\nby another name\n')
  })
})
