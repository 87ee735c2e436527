/**
 * What of /proc can be read inside, by a list written by hand: a file that a kernel adds is named here before it is let through, or is
 * masked. Programs that ask /proc about the machine go on working.
 */
import { expect, test } from 'vitest'
import { describeWith, testWith } from '../support/needs.ts'
import { ENGINES, type Engine, makeTestSite, sh } from './chain.ts'
import { planOnce } from './launch.ts'

/** Needed by programs, of the sandbox's own namespaces, or the same on every machine with this kernel. */
const READABLE = [
  ...['cpuinfo', 'loadavg', 'meminfo', 'stat', 'uptime', 'version', 'filesystems'], // libraries and runtimes ask for these
  ...['mounts', 'net', 'self', 'sysvipc', 'thread-self'], // the sandbox's own
  ...['crypto', 'devices', 'dma', 'execdomains', 'misc', 'tty', 'driver'], // what the kernel was built with and has loaded
  'locks', // of visible processes only
  ...['bus', 'fs', 'irq', 'sys', 'sysrq-trigger'], // read-only
  'cgroups', // a file of ours: the contract's row about masks compares it
]

/** A mask is the null device or a directory with nothing in it. */
const LIST = `
for path in /proc/*; do
  case $path in */[0-9]*) continue ;; esac
  if [ -c "$path" ]; then continue; fi
  if [ -d "$path" ] && [ ! -L "$path" ] && [ -z "$(ls -A "$path")" ]; then continue; fi
  echo "$path" | cut -c7-
done
`

async function inside(
  engine: Engine,
  script: string,
): Promise<{ readonly code: number | null; readonly text: string }> {
  const planned = await planOnce({ site: await makeTestSite(), engine, command: sh(script) })
  const { outcome, stdout } = await planned.run()
  return { code: outcome.exitCode, text: stdout }
}

describeWith('userns', 'of /proc', () => {
  test.each(ENGINES)('nothing but what is listed can be read (%s)', async (engine) => {
    const { text } = await inside(engine, LIST)
    const seen = text.trim().split('\n')
    expect(seen.filter((name) => !READABLE.includes(name))).toEqual([])
    expect(seen).toEqual(expect.arrayContaining(['cpuinfo', 'meminfo', 'self', 'stat', 'uptime']))
  })

  test('the list is not of what a machine has without us: the control', async () => {
    const { execa } = await import('execa')
    const { stdout } = await execa('sh', ['-c', LIST])
    expect(stdout.split('\n').filter((name) => !READABLE.includes(name))).toEqual(
      expect.arrayContaining(['interrupts', 'cmdline', 'diskstats', 'vmstat']),
    )
  })

  const PROGRAMS: readonly (readonly [string, string, RegExp])[] = [
    [
      'node',
      `node -p 'const os = require("os"); os.cpus().length > 0 && os.freemem() > 0 && os.uptime() > 0'`,
      /^true$/,
    ],
    ['free', 'free -b | grep -c Mem', /^1$/],
    ['uptime', 'uptime', /load average/],
    ['top', 'top -b -n 1 | grep -c "%Cpu"', /^1$/],
    ['ps', 'ps -e -o comm= | grep -c .', /^\d+$/],
    ['nproc', 'nproc', /^\d+$/],
    ['df', 'df /tmp | tail -1', /\/tmp$/],
  ]
  test.each(PROGRAMS)('%s has what it needs', async (_, script, expected) => {
    const { code, text } = await inside('unshare', script)
    expect(code).toBe(0)
    expect(text.trim()).toMatch(expected)
  })

  testWith('python', 'python has what it needs', async () => {
    const script = `python3 -c 'import os, resource, platform; print(os.cpu_count() > 0, os.getloadavg()[0] >= 0, bool(platform.uname().release))'`
    expect((await inside('unshare', script)).text).toBe('True True True\n')
  })
})
