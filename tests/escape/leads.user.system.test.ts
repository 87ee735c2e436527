/**
 * Targets of protected names: symbolic links at such names, and files that the repository's own configuration makes git run. The run
 * continues, the link stays as it is, and its target is closed where it lies in a writable zone.
 */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { applyLayer, discardLayer, findLayer } from '../../src/cow/layers.ts'
import type { Result } from '../../src/report/result.ts'
import { runHere } from '../real/in-process.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { WITH_AND_WITHOUT_NAMESPACES } from './chain.ts'

const LINKS: Readonly<Record<string, string>> = {
  '.git/hooks': '../githooks',
  '.npmrc': 'conf/one',
  'conf/one': 'npmrc',
  '.vscode': 'real/vscode',
  '.agents': '../outside',
  '.envrc': 'later/envrc',
  // In a directory that is closed itself.
  '.husky/pre-push': '../scripts/push.sh',
  '.husky/all': '../scripts/all',
  'scripts/all/more': '../more.sh',
  '.husky/later': '../later/hook',
}

const CONFIG = `
[merge "x"]
	driver = ways/x/../../merge.sh tools/hooks/on/the/../../../../merge.sh
[core]
	repositoryformatversion = 0
	hooksPath = tools/hooks
	fsmonitor = ./fsm.sh
	sshCommand = sh "tools/ssh.sh" -v
[include]
	path = ../cfg/git
[includeIf "gitdir:/never"]
	path = ../cfg/never
[filter "x"]
	clean = X=1 ./clean.sh %f
[diff "x"]
	textconv = bin/text
[alias]
	ac = !git add . && sh ./alias.sh
	top = !$(git rev-parse --show-toplevel)/tools/top.sh && "$PWD"/tools/pwd.sh
[lfs "customtransfer.x"]
	path = tools/transfer
[credential]
	helper = !./helper.sh
`

const HGRC = `
%include ../hg/more
[extensions]
one = hg/extension
two = ! hg/off
[hooks]
pre-status = sh hg/hook.sh
outgoing = python:hg/hook.py:run
`

const JJ = `
[ui]
editor = ["jj/editor", "-w"]
[aliases]
x = ["util", "exec", "--", "sh", "-c", "$JJ_WORKSPACE_ROOT/jj/alias.sh"]
`

/** Of the zone, and what is named there. */
const TARGETS = [
  ...['githooks/pre-commit', 'conf/npmrc', 'real/vscode/tasks.json'],
  ...['tools/hooks/pre-commit', 'fsm.sh', 'tools/ssh.sh', 'clean.sh', 'bin/text', 'helper.sh', 'alias.sh'],
  ...['cfg/git', 'cfg/never', 'cfg/filter.sh', 'merge.sh', 'tools/hooks/on/the/way'],
  ...['tools/top.sh', 'tools/pwd.sh', 'tools/transfer'],
  ...['hg/more', 'hg/extension/__init__.py', 'hg/hook.sh', 'hg/hook.py', 'hg/tool', 'jj/editor', 'jj/alias.sh'],
  ...['scripts/push.sh', 'scripts/all/hook', 'scripts/more.sh'],
]

const write = (zone: string, path: string, text: string): void => {
  mkdirSync(dirname(join(zone, path)), { recursive: true })
  writeFileSync(join(zone, path), text)
}

async function makeZone(): Promise<string> {
  const zone = join(await temporaryDirectory({ mode: 0o755 }), 'zone')
  for (const name of ['.git/objects', '.git/refs', '../outside', '.husky', 'ways/x', 'ways/y/z/away'])
    mkdirSync(join(zone, name), { recursive: true })
  write(zone, '.git/HEAD', 'ref: refs/heads/main\n')
  write(zone, '.git/config', CONFIG)
  for (const path of TARGETS) write(zone, path, 'host\n')
  write(zone, 'cfg/git', '[filter "y"]\n\tsmudge = cfg/filter.sh\n')
  write(zone, 'hg/more', '[merge-tools]\nx.executable = hg/tool\n')
  write(zone, '.hg/hgrc', HGRC)
  write(zone, '.jj/repo/config.toml', JJ)
  for (const [link, text] of Object.entries(LINKS)) symlinkSync(text, join(zone, link))
  return zone
}

const evil = (paths: readonly string[]): string =>
  `for path in ${paths.join(' ')}; do mkdir -p "$(dirname $path)"; echo evil >>$path && echo $path; done 2>/dev/null; true`

const run = (zone: string, words: readonly string[], script: string): Promise<Result> =>
  runHere(['--timeout', '30s', ...words, '--rw', '.', '--', 'sh', '-c', script], { cwd: zone })

const printed = ({ stdout }: Result): readonly string[] => stdout.split('\n').filter((line) => line !== '')

describeWith('userns', 'what a protected name leads to', () => {
  test('control: without the protection all of it can be written, and links be replaced', async () => {
    const zone = await makeZone()
    const links = Object.keys(LINKS)
    const replace = `for link in ${links.join(' ')}; do ln -sfn /tmp $link && echo $link; done`
    const result = await run(zone, ['--protect-not', '*'], `${evil(TARGETS)}; ${replace}`)
    expect(printed(result)).toEqual([...TARGETS, ...links])
  })

  describe.each(WITH_AND_WITHOUT_NAMESPACES)('$engine', ({ words }) => {
    test('cannot be written, and the links to it can be neither replaced nor removed', async () => {
      const zone = await makeZone()
      const links = Object.keys(LINKS)
      const replace = `for link in ${links.join(' ')}; do ln -sfn /tmp $link || mv $link gone || rm -f $link && echo $link; done 2>/dev/null`
      const move =
        'for way in tools cfg conf real githooks scripts scripts/all ways/x; do mv $way away && echo $way && mv away $way; done 2>/dev/null; true'
      const result = await run(zone, words, `${evil(TARGETS)}; ${replace}; ${move}`)
      expect([result.reason, result.exitCode]).toEqual(['exit', 0])
      expect(printed(result)).toEqual([])
      expect(TARGETS.filter((path) => readFileSync(join(zone, path), 'utf8').includes('evil'))).toEqual([])
      expect(Object.fromEntries(links.map((link) => [link, readlinkSync(join(zone, link))]))).toEqual(LINKS)
      // Outside of every zone nothing is covered, and nothing is shown.
      expect(readdirSync(join(zone, '../outside'))).toEqual([])
    })

    test.each([
      ['where a link leads nowhere yet', 'later/envrc'],
      ['where a link in a closed directory leads nowhere yet', 'later/hook'],
      ['where a program is named that is not there yet', 'bin/text'],
      ['where a file is included that is not there yet', 'cfg/never'],
    ])('is not to be made %s', async (_, path) => {
      const zone = await makeZone()
      await execa('rm', ['-rf', ...['bin', 'cfg/never'].map((name) => join(zone, name))])
      // Without namespaces the directories above protected paths cannot be written in.
      const result = await run(zone, words, `mkdir -p ${dirname(path)} && echo evil >${path}`)
      expect(existsSync(join(zone, path))).toBe(false)
      if (!words.includes('no-namespaces')) expect(result.reason).toBe('protected')
    })
  })

  test('follows a configuration that has changed since the last run of the same command', async () => {
    const zone = await makeZone()
    const script = evil(['other/hooks/pre-push'])
    write(zone, 'other/hooks/pre-push', 'host\n')
    expect(printed(await run(zone, [], script))).toEqual(['other/hooks/pre-push'])
    writeFileSync(join(zone, '.git/config'), `${CONFIG}[core]\n\thooksPath = other/hooks\n`)
    expect(printed(await run(zone, [], script))).toEqual([])
  })

  test('is left out when changes of a copy-on-write run are applied', async () => {
    const zone = await makeZone()
    const runtime = process.env['XDG_RUNTIME_DIR'] // has the key that seals layers
    const env = {
      XDG_STATE_HOME: join(zone, '../state'),
      ...(runtime === undefined ? {} : { XDG_RUNTIME_DIR: runtime }),
    }
    mkdirSync(env.XDG_STATE_HOME)
    const script = `${evil([...TARGETS, 'free'])}; rm -r .vscode tools`
    const apply = async (words: readonly string[]): Promise<number> => {
      const command = ['--cow', '.', '--', 'sh', '-c', script]
      const { cow } = await runHere(['--timeout', '30s', ...words, ...command], { cwd: zone, env })
      const layer = findLayer(cow?.id ?? '', env)
      const { applied } = await applyLayer(layer)
      await discardLayer(layer)
      return applied
    }
    expect(await apply([])).toBe(1)
    const written = (): readonly string[] =>
      TARGETS.filter((path) => !existsSync(join(zone, path)) || readFileSync(join(zone, path), 'utf8') !== 'host\n')
    expect([readFileSync(join(zone, 'free'), 'utf8'), readlinkSync(join(zone, '.vscode'))]).toEqual([
      'evil\n',
      LINKS['.vscode'],
    ])
    expect(written()).toEqual(['cfg/git', 'hg/more']) // as the zone has them
    for (const path of written()) expect(readFileSync(join(zone, path), 'utf8')).not.toContain('evil')
    // Control: without the protection all of it is applied.
    await apply(['--protect-not', '*'])
    expect(written()).toEqual(TARGETS)
  })

  test.each(WITH_AND_WITHOUT_NAMESPACES)(
    'is closed where a link in the home of the caller leads to it, $engine',
    async ({ words }) => {
      const zone = await makeZone()
      const home = join(zone, '../home')
      mkdirSync(join(home, '.config/nvim'), { recursive: true })
      const links = { '.bashrc': 'dot/bashrc', '.config/nvim/init.lua': 'dot/init.lua', '.config/fish': 'dot/fish' }
      for (const [link, path] of Object.entries(links)) symlinkSync(join(zone, path), join(home, link))
      write(home, '.gitconfig', `[core]\n\thooksPath = ${zone}/dot/hooks\n[alias]\n\tx = !dot/alias.sh\n`)
      const paths = `dot/bashrc dot/init.lua dot/fish/config.fish dot/hooks/pre-push dot/alias.sh dot/free`.split(/\s+/)
      for (const path of paths) write(zone, path, 'host\n')
      const inHome = (more: readonly string[]): Promise<Result> =>
        runHere(['--timeout', '30s', ...words, ...more, '--rw', '.', '--', 'sh', '-c', evil(paths)], {
          cwd: zone,
          env: { HOME: home },
        })
      const first = await inHome([])
      expect(printed(first), JSON.stringify(first)).toEqual(['dot/free'])
      expect(printed(await inHome(['--protect-not', '.bashrc']))).toEqual(['dot/bashrc', 'dot/free'])
      expect(printed(await inHome(['--protect-not', '*']))).toEqual(paths)
    },
  )

  test.each([
    ['is a link', '[core]\n\tfsmonitor = ./fsm.sh\n', 'fsm.sh'],
    ['has its work tree elsewhere', '[core]\n\tworktree = ../tree\n\tfsmonitor = ./fsm.sh\n', 'tree/fsm.sh'],
  ])('is closed from where git starts it when the repository %s', async (_, config, program) => {
    const zone = join(await temporaryDirectory({ mode: 0o755 }), 'zone')
    for (const name of ['real/objects', 'real/refs']) mkdirSync(join(zone, name), { recursive: true })
    write(zone, 'real/HEAD', 'ref: refs/heads/main\n')
    write(zone, 'real/config', config)
    write(zone, program, 'host\n')
    symlinkSync('real', join(zone, '.git'))
    expect(printed(await run(zone, [], evil([program])))).toEqual([])
    expect(printed(await run(zone, ['--protect-not', '.git'], evil([program])))).toEqual([program])
  })

  test('is set aside in a work tree that is not there before the run', async () => {
    const zone = await makeZone()
    write(zone, '.git/config', '[core]\n\tworktree = ../tree\n\tfsmonitor = ./fsm.sh\n')
    const script = 'mkdir tree && echo evil >tree/fsm.sh'
    expect((await run(zone, [], script)).reason).toBe('protected')
    expect(existsSync(join(zone, 'tree/fsm.sh'))).toBe(false)
    rmSync(join(zone, 'tree'), { recursive: true })
    expect((await run(zone, ['--protect-not', '.git/config'], script)).reason).toBe('exit')
    expect(existsSync(join(zone, 'tree/fsm.sh'))).toBe(true)
  })

  test.each(WITH_AND_WITHOUT_NAMESPACES)('is closed in each zone that shows it, $engine', async ({ words }) => {
    const zone = await makeZone()
    write(zone, 'sub/.vscode/tasks.json', 'host\n')
    const script = evil(['sub/.vscode/tasks.json'])
    expect(printed(await run(zone, words, script))).toEqual(['sub/.vscode/tasks.json']) // only a zone's root counts
    expect(printed(await run(zone, [...words, '--rw', 'sub:/data'], script))).toEqual([])
  })

  test('is refused by name where the configuration cannot be read as git reads it', async () => {
    const zone = await makeZone()
    writeFileSync(join(zone, '.git/config'), '[core\n')
    const result = await run(zone, [], 'true')
    expect(result.reason).toBe('setup')
    expect(result.message).toContain(join(zone, '.git/config'))
  })
})
