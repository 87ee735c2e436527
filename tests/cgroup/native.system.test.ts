/**
 * native/lib/cgroup.c and native/runner/watchdog.c on the kernel's own files, through driver.c with AddressSanitizer and UBSan. The host's
 * tree may lack the memory, pids and cpu controllers; what needs them is tested in tests/vm.
 */
import type { ChildProcess } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryDirectory } from '../support/directory.ts'
import { driver } from '../support/driver.ts'
import { describeWith } from '../support/needs.ts'
import { newGroup } from './groups.ts'

const MIB = 1024 ** 2

async function drive(...words: readonly (string | number)[]): Promise<string> {
  return (await execa(driver('cgroup/driver'), words.map(String))).stdout
}
const driveJson = async (...words: readonly (string | number)[]): Promise<Record<string, number>> =>
  JSON.parse(await drive(...words)) as Record<string, number>

/** Waits for the guest's first output: true then, false when it ended without any. Its exit may come before what it has printed. */
const hasSpoken = (child: Pick<ChildProcess, 'stdout' | 'once'>): Promise<boolean> =>
  new Promise((resolve) => {
    child.stdout?.once('data', () => resolve(true))
    child.once('close', () => resolve(false))
  })

/** A shell script that runs in a group until it is killed; ready when it has printed a line. */
async function startIn(group: string, script: string): Promise<void> {
  const child = execa('sh', ['-c', `echo 0 > "$1/cgroup.procs"; ${script}`, 'sh', group], { reject: false })
  onTestFinished(() => {
    child.kill('SIGKILL')
  })
  if (await hasSpoken(child)) return
  throw new Error(`the guest did not start: ${(await child).stderr}`)
}

const populationOf = (group: string): string =>
  /^populated (\d)$/m.exec(readFileSync(join(group, 'cgroup.events'), 'utf8'))?.[1] ?? ''

describeWith(['root', 'gcc', 'python'], 'the run’s cgroup', () => {
  test('only directories of a cgroup v2 tree are opened as a parent', async () => {
    expect(await drive('open', newGroup())).toBe('ok')
    expect(await drive('open', await temporaryDirectory())).toBe('EOPNOTSUPP')
    expect(await drive('open', '/proc/self/status')).toBe('ENOTDIR')
    expect(await drive('open', '/no/such/directory')).toBe('ENOENT')
    expect(await drive('open', 'relative')).toBe('EINVAL')
  })

  test('a group is made once and removed with the empty groups below it', async () => {
    const parent = newGroup()
    expect(await drive('create', parent, 'llm-do-a')).toBe('ok')
    expect(await drive('create', parent, 'llm-do-a')).toBe('EEXIST')
    mkdirSync(join(parent, 'llm-do-a/b/c'), { recursive: true })
    expect(await drive('remove', parent, 'llm-do-a')).toBe('ok')
    expect(await drive('open', join(parent, 'llm-do-a'))).toBe('ENOENT')
  })

  test('a group of another name is neither made nor removed, and one that is gone is removed already', async () => {
    const parent = newGroup()
    for (const name of ['other', '..', 'llm-do-../x', '']) {
      expect(await drive('create', parent, name), name).toBe('EINVAL')
      expect(await drive('remove', parent, name), name).toBe('EINVAL')
    }
    expect(await drive('remove', parent, 'llm-do-never')).toBe('ok')
  })

  test('a populated group is not removed', async () => {
    const parent = newGroup()
    const group = join(parent, 'llm-do-busy')
    mkdirSync(group)
    await startIn(group, 'echo ready; exec sleep 60')
    expect(await drive('remove', parent, 'llm-do-busy')).toBe('EBUSY')
    await drive('kill', group)
    expect(await drive('wait', group, 20_000)).toBe('ok')
    expect(await drive('remove', parent, 'llm-do-busy')).toBe('ok')
  })

  test('the end of a populated group is the end of what lives there and below', async () => {
    const parent = newGroup()
    mkdirSync(join(parent, 'llm-do-a/below'), { recursive: true })
    await startIn(join(parent, 'llm-do-a'), 'echo ready; exec sleep 60')
    await startIn(join(parent, 'llm-do-a/below'), `trap '' TERM INT HUP; echo ready; while :; do sleep 1; done`)
    expect(await drive('end', parent, 'llm-do-a')).toBe('ok')
    expect(await drive('open', join(parent, 'llm-do-a'))).toBe('ENOENT')
    expect(await drive('end', parent, 'llm-do-a')).toBe('ok')
    expect(await drive('end', parent, 'other')).toBe('EINVAL')
  })

  test('a rate for every disk is absent without the io controller, and no other file takes a star', async () => {
    const group = newGroup()
    const hasIo = readFileSync(join(group, 'cgroup.controllers'), 'utf8').split(/\s+/).includes('io')
    expect(await drive('set', group, 'io.max', '* wbps=1048576')).toBe(hasIo ? 'ok' : 'absent')
    expect(await drive('set', group, 'cgroup.freeze', '* 1')).not.toBe('ok')
  })

  test('threads are counted, not only processes', async () => {
    const group = newGroup()
    await startIn(
      group,
      'python3 -c \'import threading, time\nfor i in range(4): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\nprint("ready", flush=True); time.sleep(60)\' & wait',
    )
    expect(await drive('threads', group)).toBe('6')
    expect(await drive('count', group)).toBe('2')
    expect(await drive('threads', newGroup())).toBe('0')
  })

  test('a file that this kernel or host lacks is told apart from a value it refuses', async () => {
    const group = newGroup()
    expect(await drive('set', group, 'cgroup.freeze', '0')).toBe('ok')
    expect(await drive('set', group, 'no.such.file', '1')).toBe('absent')
    expect(await drive('set', group, 'cgroup.freeze', 'x')).toBe('EINVAL')
    expect(await drive('set', group, '../cgroup.freeze', '0')).not.toBe('ok')
  })

  const GUESTS = [
    ['one process', 'echo ready; exec sleep 60'],
    [
      'a tree that ignores signals',
      `trap '' TERM INT HUP; (trap '' TERM; sleep 60) & sh -c 'sleep 60 & wait' & echo ready; wait`,
    ],
    ['a stopped tree', 'sh -c "kill -STOP \\$\\$" & echo ready; kill -STOP $$'],
    ['daemons that left the session', 'for i in 1 2 3 4 5; do setsid setsid sleep 60 & done; echo ready; wait'],
    ['a tree that keeps forking', 'f() { sleep 0.01 & }; echo ready; while :; do f; f; wait; done'],
  ] as const
  test.each(['kill', 'kill-each'])(
    '%s ends every tree, and a frozen one with what lives in groups below',
    async (way) => {
      const group = newGroup()
      for (const [, script] of GUESTS) await startIn(group, script)
      expect(populationOf(group)).toBe('1')
      expect(await drive(way, group)).toBe('ok')
      expect(await drive('wait', group, 20_000)).toBe('ok')
      expect([populationOf(group), await drive('count', group)]).toEqual(['0', '0'])
      mkdirSync(join(group, 'below'))
      for (const one of [group, join(group, 'below')]) await startIn(one, 'echo ready; exec sleep 60')
      await drive('set', group, 'cgroup.freeze', '1')
      expect(await drive('count', group)).toBe('2')
      expect(await drive(way, group)).toBe('ok')
      expect(await drive('wait', group, 20_000)).toBe('ok')
    },
  )

  test('waiting for a group that stays populated times out', async () => {
    const group = newGroup()
    await startIn(group, 'echo ready; exec sleep 60')
    for (const milliseconds of [0, 30]) expect(await drive('wait', group, milliseconds)).toBe('ETIMEDOUT')
  })

  test('cpu time is counted without any controller, and what is not counted says -1', async () => {
    const group = newGroup()
    await startIn(group, 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo ready; exec sleep 60')
    const usage = await driveJson('usage', group)
    expect(usage.cpuUsec).toBeGreaterThan(0)
    const has = (controller: string) =>
      readFileSync(join(group, 'cgroup.controllers'), 'utf8').split(/\s+/).includes(controller)
    expect(usage.oomKill === -1).toBe(!has('memory'))
    expect(usage.pidsMax === -1).toBe(!has('pids'))
  })
})

/** Guests that hold memory in one way each; all hold 64 MiB. */
const HOGS = [
  ['anonymous pages', 'b = bytearray(64 << 20)'],
  [
    'pages of a grandchild',
    'import os\nif os.fork() == 0:\n if os.fork() == 0:\n  b = bytearray(b"x") * (64 << 20)\n  print("ready", flush=True)\n time.sleep(60)\ntime.sleep(60)',
  ],
  ['a memory file that is not mapped', 'import os\nfd = os.memfd_create("m"); os.write(fd, bytes(64 << 20))'],
  ['a shared mapping', 'import mmap\nm = mmap.mmap(-1, 64 << 20); m.write(b"x" * (64 << 20))'],
] as const

describeWith(['gcc', 'python'], 'the memory watchdog', () => {
  const startHog = async (text: string): Promise<number> => {
    const child = execa('python3', ['-c', `import time\n${text}\nprint("ready", flush=True)\ntime.sleep(60)`], {
      reject: false,
    })
    onTestFinished(async () => {
      await execa('pkill', ['-KILL', '-P', String(child.pid)], { reject: false })
      child.kill('SIGKILL')
    })
    if (await hasSpoken(child)) return child.pid ?? 0
    throw new Error(`the guest did not start: ${(await child).stderr}`)
  }

  test.each(HOGS)('sees %s', async (_, text) => {
    const pid = await startHog(text)
    const above = await driveJson('watch', '-', pid, 48 * MIB)
    expect(above).toMatchObject({ over: 1 })
    expect(above.used).toBeGreaterThan(60 * MIB)
    const below = await driveJson('watch', '-', pid, 160 * MIB)
    expect(below).toMatchObject({ over: 0 })
    expect(below.used).toBeLessThan(160 * MIB)
  })

  test('counts pages that a family shares only once when it matters', async () => {
    const pid = await startHog(
      'import os\nb = bytearray(b"x") * (40 << 20)\nfor i in range(8):\n if os.fork() == 0:\n  time.sleep(60)',
    )
    await expect.poll(async () => (await driveJson('watch', '-', pid, 100 * MIB)).processes).toBe(9)
    const seen = await driveJson('watch', '-', pid, 100 * MIB)
    expect(seen).toMatchObject({ over: 0, processes: 9 })
    expect(seen.used).toBeGreaterThan(38 * MIB)
  })

  test('sees a child that a thread has made', async () => {
    const pid = await startHog(
      'import threading, subprocess\nt = threading.Thread(target=lambda: subprocess.Popen(["sleep", "60"]).wait(), daemon=True); t.start()',
    )
    await expect.poll(async () => (await driveJson('watch', '-', pid, MIB * 1024)).processes).toBe(2)
    // Two of the first process, one of the second: as RLIMIT_NPROC counts them.
    expect(await driveJson('watch', '-', pid, MIB * 1024)).toMatchObject({ processes: 2, threads: 3 })
  })

  test('adds up the processor time of the tree', async () => {
    const pid = await startHog(
      'import subprocess\nsubprocess.run(["sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"])',
    )
    expect((await driveJson('watch', '-', pid, MIB)).cpuUsec).toBeGreaterThan(50_000)
  })

  test('finds a tree that is gone empty, not broken', async () => {
    const ended = execa('true')
    await ended
    expect(await driveJson('watch', '-', ended.pid ?? 0, MIB)).toMatchObject({ over: 0, used: 0 })
  })
})

describeWith(['root', 'gcc', 'python'], 'the memory watchdog with a group', () => {
  test('follows the group wherever its processes hang', async () => {
    const group = newGroup()
    await startIn(
      group,
      `setsid python3 -c 'import time; b = bytearray(b"x") * (64 << 20); print("ready", flush=True); time.sleep(60)' & wait`,
    )
    expect(await driveJson('watch', group, 1, 48 * MIB)).toMatchObject({ over: 1 })
    expect(await driveJson('watch', group, 1, 160 * MIB)).toMatchObject({ over: 0 })
  })

  test('counts what lies in a scratch file system', async () => {
    const directory = await temporaryDirectory()
    await execa('mount', ['-t', 'tmpfs', '-o', 'size=80m', 'llm-do-test', directory])
    onTestFinished(() => execa('umount', [directory]).then(() => undefined))
    await execa('dd', ['if=/dev/zero', `of=${join(directory, 'filler')}`, 'bs=1M', 'count=64', 'status=none'])
    const group = newGroup()
    expect(await driveJson('watch', group, 1, 48 * MIB, directory)).toMatchObject({ over: 1, used: 64 * MIB })
    expect(await driveJson('watch', group, 1, 65 * MIB, directory)).toMatchObject({ over: 0 })
  })
})
