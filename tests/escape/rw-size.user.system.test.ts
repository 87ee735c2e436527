/** The limit of what is written to writable zones: it ends the run whatever way a command takes to fill the disk. */
import { link, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Result } from '../../src/report/result.ts'
import { runForResult } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { callers, currentUser, PLAIN_ID, type User } from '../support/users.ts'

const LIMIT = ['--rw-size', '8m']
const MIB = 1024 ** 2

const python = (...lines: readonly string[]): string =>
  ['python3 - <<END', 'import ctypes, mmap, os, socket, time', ...lines, 'print("filled", flush=True)']
    // Where the test has made a file that says so, it waits: another program would lose its descriptors.
    .concat('if os.path.exists("stay"): time.sleep(600)', 'END')
    .join('\n')

const removed = 'os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600)'
const FILL = `b"x" * (${32 * MIB})`
const mapped = ['m = mmap.mmap(f, 0)', 'for at in range(0, len(m), 4096): m[at] = 1']

/** Ways to take 32 MiB of the disk. */
const WAYS: Readonly<Record<string, string>> = {
  'one file': python(`open("big", "wb").write(${FILL})`),
  'many small files': python('for n in range(2000): open(str(n), "wb").write(b"x" * 16384)'),
  'many empty files': python('for n in range(9000): open(str(n), "wb").close()'),
  'a file without a byte that is written': python(
    'f = os.open("f", os.O_CREAT | os.O_RDWR)',
    `os.posix_fallocate(f, 0, ${32 * MIB})`,
  ),
  'a sparse file that is mapped': python(
    'f = os.open("f", os.O_CREAT | os.O_RDWR)',
    `os.truncate(f, ${32 * MIB})`,
    ...mapped,
  ),
  'a directory of no mode': python('os.mkdir("h")', `open("h/big", "wb").write(${FILL})`, 'os.chmod("h", 0)'),
  'a directory far below': python(
    'for n in range(100): os.mkdir("deeper"); os.chdir("deeper")',
    `open("big", "wb").write(${FILL})`,
    'os.chdir("/workspace")',
  ),
  'a file of the host': python(`open("host", "wb").write(b"x" * ${32 * MIB})`),
  'a second name of a zone': python(`open("/again/big", "wb").write(${FILL})`),
  'a removed file that is open': python(
    'f = os.open("f", os.O_CREAT | os.O_RDWR)',
    'os.remove("f")',
    `os.write(f, ${FILL})`,
  ),
  'a file that never had a name': python(`f = ${removed}`, `os.write(f, ${FILL})`),
  'a removed file that is only mapped': python(
    `f = ${removed}`,
    `os.truncate(f, ${32 * MIB})`,
    // The class mmap would keep a descriptor.
    'libc = ctypes.CDLL(None)',
    'libc.mmap.restype = ctypes.c_void_p',
    `at = libc.mmap(None, ctypes.c_size_t(${32 * MIB}), 3, 1, f, ctypes.c_long(0))`,
    'os.close(f)',
    `ctypes.memset(at, 1, ${32 * MIB})`,
  ),
  'removed files that are under way in a socket': python(
    'a, b = socket.socketpair()',
    'for n in range(16):',
    `    f = ${removed}`,
    `    os.write(f, b"x" * ${2 * MIB})`,
    '    socket.send_fds(a, [b"x"], [f])',
    '    os.close(f)',
  ),
  'a removed file of a process that cannot be looked at': python(
    'ctypes.CDLL(None).prctl(4, 0)',
    `f = ${removed}`,
    `os.write(f, ${FILL})`,
    'while os.path.exists("stay"): time.sleep(1)',
  ),
}

interface Call {
  readonly as: User
  readonly zone: string
  readonly words: readonly string[]
  readonly script: string
}

const runIn = ({ as, zone, words, script }: Call): Promise<Result> =>
  runForResult(['--memory', '200m', '--rw', '.', ...words, '--', 'sh', '-c', script], { as, cwd: zone })

interface Made {
  readonly below?: string
  readonly names?: readonly string[]
}

async function makeZone(as: User, { below, names = [] }: Made = {}): Promise<string> {
  const zone = await temporaryDirectory({ owner: as, ...(below === undefined ? {} : { below }) })
  onTestFinished(async () => {
    // Node removes no path that is longer than the kernel takes.
    await execa('sh', ['-c', 'chmod -R u+rwX "$0"; rm -rf "$0/aaaaaaaaaaaaaaaaaaaa"', zone], { reject: false })
  })
  await writeFile(join(zone, 'host'), Buffer.alloc(16 * MIB, 1))
  await mkdir(join(zone, 'sub'))
  for (const name of names) await writeFile(join(zone, name), '')
  if (as !== currentUser()) await execa('chown', ['-hR', `${PLAIN_ID}:${PLAIN_ID}`, zone])
  return zone
}

const AGAIN = (zone: string) => ['--rw', `${zone}/sub:/again`]

describeWith(['unshare', 'userns'], 'A limit of what writable zones may grow by', () => {
  describe.each(callers())('for a command of %s', (as) => {
    test.each(Object.entries(WAYS))('ends a run that fills %s', async (title, script) => {
      // The free space of a disk that others fill and clear says nothing sure about a file without a size.
      const below =
        title.includes('only mapped') || title.includes('under way') || title.includes('cannot be')
          ? '/dev/shm'
          : undefined
      const where = below === undefined ? {} : { below }
      const zone = await makeZone(as, { ...where, names: ['stay'] })
      const over = await runIn({ as, zone, words: [...AGAIN(zone), ...LIMIT], script })
      expect([over.reason, over.exitStatus, over.message]).toEqual([
        'disk',
        137,
        'stopped when writable zones had grown by more than 8MiB (resources.rwSize, --rw-size)',
      ])
      // Control: without the limit the same fills the disk, and ends well.
      const free = await makeZone(as, where)
      expect(await runIn({ as, zone: free, words: AGAIN(free), script })).toMatchObject({
        reason: 'exit',
        stdout: 'filled\n',
      })
    })

    test('ends a run in whose zone files cannot be added up, and refuses one that begins so', async () => {
      const zone = await makeZone(as)
      const deepen = python(
        'for n in range(300): os.mkdir("a" * 20); os.chdir("a" * 20)',
        'import time',
        'time.sleep(600)',
      )
      const words = [...AGAIN(zone), '--protect-not', '*']
      const lost = await runIn({ as, zone, words: [...words, ...LIMIT], script: deepen })
      expect([lost.reason, lost.error?.code, lost.error?.message]).toEqual([
        ...['lost', 'BACKEND_FAILED', expect.stringContaining('could not be added up any more (ENAMETOOLONG)')],
      ])
      const refused = await runIn({ as, zone, words: [...words, ...LIMIT], script: 'echo begun' })
      expect([refused.reason, refused.error?.message]).toEqual(['setup', expect.stringContaining('--rw-size')])
      // Control: without the limit it is a tree like any other, in which only root's set-id files are looked for.
      const control = await runIn({ as, zone, words, script: 'echo begun' })
      expect([control.stdout, control.error?.message ?? '']).toEqual([
        as === 'plain' ? 'begun\n' : '',
        expect.not.stringContaining('--rw-size'),
      ])
    })

    test('leaves a run alone that takes no more than it gives back', async () => {
      const zone = await makeZone(as)
      await link(join(zone, 'host'), join(zone, 'sub/second'))
      const script = [
        // Bytes that were there before count for nothing, and neither do holes and other names.
        'for n in 1 2 3 4 5 6 7 8; do ln host name$n; done; truncate -s 1T hole',
        'head -c 16m /dev/zero >host; rm name* /again/second; mv host moved',
        'head -c 7m /dev/zero >>moved; sleep 1.2; rm moved; head -c 22m /dev/zero >new; echo well',
      ].join('\n')
      const words = [...AGAIN(zone), ...LIMIT]
      expect(await runIn({ as, zone, words, script })).toMatchObject({ reason: 'exit', exitCode: 0, stdout: 'well\n' })
      // Control: two more are too much.
      const more = 'head -c 9m /dev/zero >>new'
      expect(await runIn({ as, zone, words, script: more })).toMatchObject({
        reason: 'disk',
        denials: [{ fix: '--rw-size 16m' }],
      })
    })
  })
})
