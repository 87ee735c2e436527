/** The profile `agent`: a full-screen program at a real terminal (tmux), and the files that it keeps and leaves alone. */
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, onTestFinished, test, vi } from 'vitest'
import { type KeptHome, listHomes, removeHome } from '../../src/run/homes.ts'
import { programFor, runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { checkoutFor, currentUser } from '../support/users.ts'
import type { TextRun } from './directory.ts'
import { textHere } from './in-process.ts'

interface Site {
  readonly project: string
  readonly home: string
  readonly env: Readonly<Record<string, string>>
  readonly run: (...argv: readonly string[]) => Promise<TextRun>
  readonly llmDo: (cwd: string, ...argv: readonly string[]) => Promise<string>
  /** Files of the project. */
  readonly homes: () => readonly KeptHome[]
}

const IDENTITY = '[user]\n\tname = "Ann \\"Q\\" Lee"\n\temail = ann@example.org\n'
const DANGEROUS = '[credential]\n\thelper = store\n[core]\n\tpager = touch /tmp/paged\n[include]\n\tpath = ~/more\n'

/** A repository, and a person with a configuration and keys; what is kept for the project is removed when the test ends. */
async function site(): Promise<Site> {
  const [project, home] = [await temporaryDirectory(), await temporaryDirectory()]
  const env = { HOME: home, TERM: 'xterm' }
  await writeFile(join(home, '.gitconfig'), IDENTITY + DANGEROUS)
  await writeFile(join(home, 'more'), '[url "ssh://x/"]\n\tinsteadOf = y:\n')
  await mkdir(join(home, '.ssh'), { mode: 0o700 })
  await writeFile(join(home, '.ssh/known_hosts'), 'git.test ssh-ed25519 AAAA\n', { mode: 0o600 })
  await writeFile(join(home, '.ssh/id'), 'hunter2\n', { mode: 0o600 })
  await execa('git', ['init', '--quiet', project], { env })
  const llmDo = async (cwd: string, ...argv: readonly string[]) =>
    (await runCli(argv, { program: 'llm-do', cwd, env })).stdout.toString()
  const run = (...argv: readonly string[]) => textHere(['--profile', 'agent', ...argv], { cwd: project, env })
  const homes = () => listHomes(env, process.getuid?.() ?? -1).filter((kept) => kept.project === project)
  onTestFinished(async () => {
    for (const kept of homes()) await removeHome(kept)
  })
  return { project, home, env, run, llmDo, homes }
}

const shell = (script: string): readonly string[] => ['--', 'sh', '-c', script]

describeWith(['userns', 'git', 'python', 'tmux'], 'an agent at a terminal', () => {
  test('has its screen and its home, commits as the person, is denied a host, and its changes are discarded', async () => {
    const { project, home, env, llmDo } = await site()
    const agent = join(import.meta.dirname, '../programs/agent.py')
    const socket = join(await temporaryDirectory(), 'tmux')
    const tmux = async (...words: readonly string[]) =>
      (await execa('tmux', ['-S', socket, '-f', '/dev/null', ...words], { env })).stdout
    onTestFinished(async () => void (await tmux('kill-server')))
    const until = (text: string) =>
      vi.waitFor(async () => expect(await tmux('capture-pane', '-p', '-S', '-', '-t', 'agent')).toContain(text), {
        timeout: 20_000,
      })
    await tmux('new-session', '-d', '-x', '150', '-y', '20', '-s', 'agent', '-c', project, 'sh')
    const log = join(home, 'audit.jsonl')
    const options = ['--profile', 'agent', '--audit', log, '--cow', '.', '--ro', agent]
    const command = [programFor(currentUser()), ...options]
    const start = () =>
      tmux('send-keys', '-t', 'agent', [...command, '--', 'python3', agent, 'evil.test'].join(' '), 'Enter')
    await start()
    await until('session 1 on /dev/pts/0')
    await until(`agent in ${project}`)
    await tmux('send-keys', '-t', 'agent', 'w')
    await until('committed by Ann "Q" Lee <ann@example.org>')
    await tmux('send-keys', '-t', 'agent', 'n')
    await until('could not reach it')
    await tmux('send-keys', '-t', 'agent', 'q')
    await until('llm-do diff')
    expect(await readFile(log, 'utf8')).toContain('"fix":"--allow-host evil.test"')
    await expect(stat(join(project, 'plan.md'))).rejects.toThrow('ENOENT')
    expect(await llmDo(project, 'changes')).toContain('A plan.md')
    const [layer] = JSON.parse(await llmDo(project, 'ps', '--cow', '--json')) as { id: string }[]
    await llmDo(project, 'discard', layer?.id ?? '')
    await start()
    await until('session 2 on /dev/pts/0')
  })
})

describeWith(['userns', 'git'], 'the profile agent', () => {
  test('shows of the person the identity of git and the known hosts, and nothing else', async () => {
    const { project, run } = await site()
    const script = 'pwd; git config --list | grep -v ^core | sort; cat /etc/ssh/ssh_known_hosts; ls -A ~ ~/..; tty'
    const { out } = await run(...shell(script))
    // The package is shown, too, wherever it is.
    const isOnWayToPackage = (name: string) => checkoutFor(currentUser()).startsWith(`/home/${name}/`)
    expect(out.split('\n').filter((line) => !isOnWayToPackage(line))).toEqual([
      project,
      'user.email=ann@example.org',
      'user.name=Ann "Q" Lee',
      'git.test ssh-ed25519 AAAA',
      '/home/sandbox:',
      '',
      '/home/sandbox/..:',
      'sandbox',
      'not a tty',
      '',
    ])
  })

  test('keeps a home for each project and name, whose mode is the command’s', async () => {
    const { project, home, run, llmDo } = await site()
    await run(...shell('mkdir ~/.claude && echo kept >~/.claude/login; echo x >~/.npmrc; chmod 755 ~'))
    const login = async (...options: readonly string[]) => (await run(...options, ...shell('cat ~/.claude/login'))).out
    expect(await Promise.all([login(), login()])).toEqual(['kept\n', 'kept\n'])
    expect(await login('--home', 'other')).toBe('')
    expect(await login('--home', 'none')).toBe('')
    expect((await run('--home', '5m', ...shell('df -k --output=size ~ | tail -1'))).out.trim()).toBe('5120')
    const elsewhere = await temporaryDirectory()
    const words = ['--profile', 'agent', ...shell('cat ~/.claude/login')]
    expect(await textHere(words, { cwd: elsewhere, env: { HOME: home } })).toMatchObject({ out: '' })
    await llmDo(elsewhere, 'homes', 'remove', 'agent')
    const kept = JSON.parse(await llmDo(project, 'homes', '--json')) as KeptHome[]
    const here = kept.filter((one) => [project, elsewhere].includes(one.project))
    expect(here.map((one) => [one.project, one.name])).toEqual([
      [project, 'agent'],
      [project, 'other'],
    ])
    await llmDo(project, 'homes', 'remove', 'agent')
    expect(await login()).toBe('')
  })

  test('lets no other run write into a home, whatever it shows', async () => {
    const { run, homes } = await site()
    await run('--', 'true')
    const path = homes()[0]?.path ?? ''
    expect(await run('--home', 'none', '--rw', path, '--', 'touch', join(path, 'planted'))).toMatchObject({
      status: 125,
    })
    await run('--home', 'none', '--rw', join(path, '../../..'), '--', 'touch', join(path, 'planted'))
    await expect(stat(join(path, 'planted'))).rejects.toThrow('ENOENT')
  })

  testWith('python', 'a sandbox by Landlock that a tool makes inside holds', async () => {
    const { run } = await site()
    const program = `
import ctypes, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
rules = libc.syscall(444, struct.pack("Q", 0x2 | 0x100), 8, 0)
if rules < 0: sys.exit("no Landlock here: 0")
libc.prctl(38, 1, 0, 0, 0)
if libc.syscall(446, rules, 0): sys.exit("cannot enforce")
open("inner", "w")`
    const { err } = await run('--', 'python3', '-c', program)
    expect(err).toMatch(/PermissionError|no Landlock here/)
    expect((await run('--', 'touch', 'inner')).status).toBe(0)
  })
})
