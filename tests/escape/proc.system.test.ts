/**
 * Readable files of /proc, by a list written by hand: a file that a kernel adds is named here before it is let through, or is masked.
 * Programs that read /proc about the machine still work.
 */
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { describeWith } from '../support/needs.ts'
import { makeTestSite, sh } from './chain.ts'
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

const NODE = 'const os = require("os"); os.cpus().length > 0 && os.freemem() > 0 && os.uptime() > 0'
const PROGRAMS = [
  `node -p '${NODE}'`,
  'free -b | grep -c Mem',
  'uptime | grep -c "load average"',
  'top -b -n 1 | grep -c "%Cpu"',
  'ps -e -o comm= | grep -c "^ps"',
  'nproc | grep -c "^[1-9]"',
  'df /tmp | grep -c "/tmp$"',
]

async function inside(script: string): Promise<readonly string[]> {
  const planned = await planOnce({ site: await makeTestSite(), engine: 'unshare', command: sh(script) })
  return (await planned.run()).stdout.trim().split('\n')
}

describeWith('userns', 'of /proc', () => {
  test('nothing but the files of the list can be read', async () => {
    const seen = await inside(LIST)
    expect(seen.filter((name) => !READABLE.includes(name))).toEqual([])
    expect(seen).toEqual(expect.arrayContaining(['cpuinfo', 'meminfo', 'self', 'stat', 'uptime']))
    const { stdout: control } = await execa('sh', ['-c', LIST])
    expect(control.split('\n').filter((name) => !READABLE.includes(name))).toEqual(
      expect.arrayContaining(['interrupts', 'cmdline', 'diskstats', 'vmstat']),
    )
  })

  test('programs have what they need', async () => {
    expect(await inside(PROGRAMS.join('\n'))).toEqual(['true', '1', '1', '1', '1', '1', '1'])
  })
})
