/**
 * A sandbox without namespaces: what a command reaches of the host, and what the same program reaches as a plain process of the same
 * user, which is the negative control.
 */
import { once } from 'node:events'
import { chown, copyFile, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import type { Result } from '../../src/report/result.ts'
import { textHere } from '../real/in-process.ts'
import { cliWords, programFor, runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { processesWith } from '../support/processes.ts'
import { becoming, checkoutFor, currentUser, PLAIN_ID, type User } from '../support/users.ts'

const PROGRAM = join(import.meta.dirname, '../programs/reach-out.py')

/** A process of the command's own user. */
const OUTSIDE = join(import.meta.dirname, '../programs/stand-outside.py')

/** Every word of the program, in its order. */
const EVERYTHING =
  'read read-by-root read-by-link list write make link-in truncate tcp udp abstract socket-file pair-to-path signal ptrace memory environ limit nice shm semaphores queue posix-queue key descriptor'.split(
    ' ',
  )

/** Root's command is the owner of its writable zones. */
const OWNER: User = 'plain'

/** With a descriptor that is passed on by mistake. */
const LEAKING = ['bash', '-c', 'exec 9</dev/null; exec "$@"', 'bash']

/** @param socket in a writable zone, as the socket of a daemon may be */
async function startOutside(socket: string): Promise<readonly string[]> {
  const [file = '', ...words] = [...becoming(OWNER), '/usr/bin/python3', OUTSIDE, socket]
  const child = execa(file, words, { stdin: 'pipe', reject: false, cwd: '/' })
  onTestFinished(async () => {
    child.stdin.end()
    await child
  })
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  return line.split(' ')
}

const directory = () => temporaryDirectory({ owner: OWNER, mode: 0o755 })

async function ownedFile(path: string, text: string): Promise<string> {
  await writeFile(path, text, { mode: 0o600 })
  if (currentUser() === 'root') await chown(path, PLAIN_ID, PLAIN_ID)
  return path
}

/** From the line of its status, since the name of a program may hold anything. */
async function parentOf(pid: number): Promise<number> {
  return Number(/^PPid:\s+(\d+)$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1])
}

/** A directory with the programs of the host, a zone of the plain user's, and a secret of the same user. */
const CHROOT = `
mkdir usr etc proc dev tmp run app home zone closed
for name in bin sbin lib lib64; do ln -s usr/$name $name; done
echo secret >closed/secret
chmod 1777 tmp; chown -R ${PLAIN_ID}:${PLAIN_ID} zone closed home`
const CHROOT_MOUNTS =
  'for name in usr etc dev; do mount --bind /$name $name; done; mount -t proc none proc; mount --bind "$CHECKOUT" app'

const withoutWarnings = (stderr: Buffer): string => `${stderr}`.replace(/^llm-do: warning.*\n/gm, '')

/** Words of a run that writes to a zone. */
const runIn = (zone: string, script: string, more: readonly string[] = []): readonly string[] => [
  ...['--backend', 'no-namespaces', '--rw', zone, '--workdir', zone, ...more, '--', 'sh', '-c', script],
]

const sleepersFor = (seconds: string) => processesWith(`sleep\0${seconds}\0`)

describeWith(['python'], 'a sandbox without namespaces', () => {
  test.each([
    { net: 'none', reached: [] },
    { net: 'host', reached: ['tcp', 'udp'] },
  ])('with --net $net reaches of what a plain process reaches only $reached', async ({ net, reached }) => {
    const [outside, zone] = [await directory(), await directory()]
    const secret = await ownedFile(join(outside, 'secret'), 'secret')
    const program = join(zone, 'reach-out.py')
    await copyFile(PROGRAM, program)
    const [pid = '', tcp = '', udp = '', name = '', address = ''] = await startOutside(join(zone, 'socket'))
    const command = ['/usr/bin/python3', program, secret, pid, tcp, udp, name, outside, address, join(zone, 'socket')]
    const cli = ['--backend', 'no-namespaces', '--net', net, '--rw', zone, '--workdir', zone, '--', ...command]
    const { status, stdout, stderr } = await runCli(cli, { through: LEAKING })
    expect({ status, stdout: `${stdout}`, stderr: withoutWarnings(stderr) }).toEqual({
      status: 0,
      stdout: [...reached, 'tried', ''].join('\n'),
      stderr: '',
    })
    expect(await readFile(secret, 'utf8')).toBe('secret')
    const [file = '', ...words] = [...LEAKING, ...becoming(OWNER), ...command]
    const control = await execa(file, words, { cwd: zone })
    expect(control.stdout.split('\n').toSorted()).toEqual([...EVERYTHING, 'tried'].toSorted())
  })

  test('ends with everything that it has started', async () => {
    const zone = await directory()
    const detached = (seconds: string) => `(trap "" TERM; setsid setsid sh -c '(sleep ${seconds} &) &') & `
    const [late, early] = [`86${process.pid}1`, `86${process.pid}2`]
    const stopped = await textHere(runIn(zone, `${detached(late)} exec sleep ${late}`, ['--timeout', '1s']))
    expect(stopped).toMatchObject({ status: 124 })
    expect(await textHere(runIn(zone, `${detached(early)} exec sleep 0.2`))).toMatchObject({ status: 0 })
    expect([sleepersFor(late), sleepersFor(early)]).toEqual([[], []])
  })

  test.each(['launch', 'init'])('ends with everything when its %s is killed', async (killed) => {
    const zone = await directory()
    const seconds = `86${process.pid}3`
    const script = `init=$PPID; export init; (trap "" TERM; setsid setsid sh -c '(echo $init; exec sleep ${seconds}) &') & exec sleep ${seconds}`
    const [file = '', ...argv] = cliWords(runIn(zone, script))
    const env = { PATH: process.env.PATH, HOME: '/nonexistent' }
    const runner = execa(file, argv, { stdin: 'ignore', reject: false, cwd: '/', env, extendEnv: false })
    onTestFinished(() => void runner.kill('SIGKILL'))
    const [line] = (await once(createInterface({ input: runner.stdout }), 'line')) as [string]
    const init = Number(line)
    await expect.poll(() => sleepersFor(seconds)).not.toEqual([])
    process.kill(killed === 'init' ? init : await parentOf(init), 'SIGKILL')
    await expect.poll(() => sleepersFor(seconds)).toEqual([])
    await runner
  })

  test('keeps protected paths, and the way to them', async () => {
    const zone = await directory()
    for (const path of ['src', '.git', '.git/hooks', '.git/objects', '.git/refs']) await mkdir(join(zone, path))
    await writeFile(join(zone, '.git/HEAD'), 'ref: refs/heads/main\n')
    if (currentUser() === 'root') await execa('chown', ['--recursive', `${PLAIN_ID}:${PLAIN_ID}`, zone])
    const tries = ['src/new', '.git/objects/new', '.git/hooks/post-commit', '.git/new', 'new']
    const script = `for path in ${tries.join(' ')}; do touch $path && echo $path; done 2>/dev/null; mv .git moved 2>/dev/null || echo kept`
    const { out } = await textHere(runIn(zone, script))
    expect(out.split('\n')).toEqual(['src/new', '.git/objects/new', 'kept', ''])
    const opened = await textHere(runIn(zone, script, ['--protect-not', '*']))
    expect(opened.out.split('\n')).toEqual([...tries, ''])
  })

  test('shows a toolchain outside of /usr, and nothing next to it', async () => {
    const home = await directory()
    const programs = join(home, '.nvm/versions/node/v1/bin')
    await mkdir(programs, { recursive: true })
    await writeFile(join(home, '.nvm/secret'), 'secret')
    await writeFile(join(programs, 'tool'), '#!/bin/sh\necho shown; cat "$HOME/.nvm/secret"\n', { mode: 0o755 })
    const env = { HOME: home, PATH: `${programs}:${process.env['PATH']}` }
    const { out } = await textHere(['--backend', 'no-namespaces', '--', 'tool'], { env, cwd: '/' })
    expect(out).toBe('shown\n')
    const hidden = ['--backend', 'no-namespaces', '--toolchains', 'off', '--', 'tool']
    expect((await textHere(hidden, { env, cwd: '/' })).status).not.toBe(0)
  })

  testWith('root', 'works inside a chroot, where namespaces cannot be had', async () => {
    const site = await temporaryDirectory({ mode: 0o755 })
    await execa('bash', ['-ec', CHROOT], { cwd: site })
    const attempt = async (as: User, words: readonly string[]) => {
      const script = 'id -u; echo new >made && cat made; cat /closed/secret'
      const zone = ['--rw', '/zone', '--workdir', '/zone', '--', 'sh', '-c', script]
      const command = [...becoming(as), '/app/bin/llm-do-exec', ...words, ...zone]
      const inside = `${CHROOT_MOUNTS}; exec chroot . env -i PATH=/usr/bin:/bin HOME=/home "$@"`
      const around = ['--mount', 'bash', '-ec', inside, 'bash', ...command]
      return execa('unshare', around, { cwd: site, env: { CHECKOUT: checkoutFor(as) }, reject: false })
    }
    for (const as of ['root', 'plain'] as const) {
      expect(await attempt(as, ['--backend', 'no-namespaces'])).toMatchObject({
        exitCode: 1,
        stdout: `${PLAIN_ID}\nnew`,
        stderr: expect.stringContaining('cat: /closed/secret: Permission denied'),
      })
      expect(await attempt(as, [])).toMatchObject({
        exitCode: 125,
        stdout: '',
        stderr: expect.stringMatching(/this is a chroot[\s\S]*hint: .*--backend no-namespaces/),
      })
    }
  })

  testWith('root', 'is refused for writable zones of root', async () => {
    const zone = await temporaryDirectory()
    const ofRoot = await textHere(['--backend', 'no-namespaces', '--rw', zone, '--', 'true'])
    expect(ofRoot).toMatchObject({ status: 125, err: expect.stringContaining('start it as another user') })
  })
})

/** A user that nothing else on this machine has, with 100 processes and 200 threads that sleep until their parent ends. */
const CROWDED_ID = 65_011
const CROWD = `
import os, sys, threading
end, parent = os.pipe()
for _ in range(100):
    if os.fork() == 0: os.close(parent); os.read(end, 1); os._exit(0)
threading.stack_size(1 << 16)
for _ in range(200): threading.Thread(target=os.read, args=(end, 1), daemon=True).start()
print('ready', flush=True)
sys.stdin.read()
os._exit(0)`

const START_ALL = `
import os, time
started = 0
try:
    while started < 100:
        if os.fork() == 0: time.sleep(60)
        started += 1
except BlockingIOError: pass
print(started)`

describeWith(['root', 'python'], 'a command whose user has 300 processes, without namespaces and a cgroup,', () => {
  test('may start as many more as --pids says', async () => {
    const [file, ...as] = ['setpriv', '--reuid', `${CROWDED_ID}`, '--regid', `${CROWDED_ID}`, '--clear-groups', '--']
    const crowd = execa(file, [...as, '/usr/bin/python3', '-c', CROWD], { stdin: 'pipe', reject: false, cwd: '/' })
    onTestFinished(async () => {
      crowd.kill('SIGKILL')
      await crowd
    })
    await once(crowd.stdout, 'data')
    const home = await temporaryDirectory({ mode: 0o700 })
    await chown(home, CROWDED_ID, CROWDED_ID)
    const run = ['--json', '--backend', 'no-namespaces', '--pids', '40', '--', '/usr/bin/python3', '-c', START_ALL]
    const { stdout } = await execa(file, [...as, programFor('plain'), ...run], {
      cwd: home,
      env: { PATH: process.env['PATH'], HOME: home, XDG_RUNTIME_DIR: home },
      extendEnv: false,
    })
    const result = JSON.parse(stdout) as Result
    expect(result).toMatchObject({ exitCode: 0, limits: { pids: { max: 40, by: 'rlimit' } } })
    // Threads of the runner begin and end meanwhile.
    expect(Number(result.stdout)).toBeGreaterThan(20)
    expect(Number(result.stdout)).toBeLessThan(60)
  })
})
