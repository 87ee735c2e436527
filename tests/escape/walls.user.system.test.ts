/** Walls of the tree that no row of the contract inspects: the old root, propagation of mounts, device nodes. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { cliWords } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { makeTestSite, sh, words } from './chain.ts'
import { planOnce, supervised } from './launch.ts'
import { withRecords } from './unguarded.ts'

/** In a new mount namespace, in which every mount is shared, as on a host with systemd. */
const SHARED = ['unshare', '--mount', '--propagation', 'shared', '/bin/sh', '-ec']

/** mountinfo without what the script itself changed; numbers of mounts are of no interest. */
const MOUNTS = 'cut -d" " -f4-6 /proc/self/mountinfo'

const engine = 'unshare'

/** A run as words of a shell, and where it has its files. */
async function runAtHome() {
  const home = await temporaryDirectory()
  const run = cliWords(words(await makeTestSite(), { engine, mode: 'ro' }, ['/bin/true'])).join(' ')
  return { run, home, env: { HOME: home, XDG_RUNTIME_DIR: home } }
}

describeWith('userns', 'the tree', () => {
  test('has no mount but those of the plan', async () => {
    const points = await inside('cut -d" " -f5 /proc/self/mountinfo')
    const allowed = [
      /^\/$/,
      /^\/(proc|dev|usr|etc|tmp|run|zone|probe|home|opt|bin|sbin|lib\w*|\.init)(\/|$)/,
      /^\/sys\/fs\/cgroup$/,
    ]
    expect(points.filter((point) => !allowed.some((one) => one.test(point)))).toEqual([])
    // A root that is still there twice would list its own mount points a second time.
    expect(points.filter((point) => point === '/')).toHaveLength(1)
    expect(points.length).toBeLessThan(100)
  })

  test('shows the command no group above its own: it is the root of its cgroups', async () => {
    const planned = await planOnce({ site: await makeTestSite(), engine, command: ['/bin/cat', '/proc/self/cgroup'] })
    // One line for each hierarchy.
    expect((await planned.run()).stdout).toMatch(/^(\d+:[^:]*:\/\n)+$/)
  })

  test('is not made by a launch file with the identity of root', async () => {
    const launch = (await planOnce({ site: await makeTestSite(), engine, command: ['/bin/true'] })).launch()
    const asRoot = withRecords(launch, (records) =>
      records.map((record) => (record[0] === 'identity' ? ['identity', record[1], '0', '0'] : record)),
    )
    expect(await supervised(asRoot)).toMatchObject({
      reason: 'setup',
      failure: { step: 'engine: identity' },
    })
  })

  test('the nodes of /dev are nosuid and cannot be executed from', async () => {
    const flags = await inside(`for node in null zero full random urandom; do
        grep " /dev/$node " /proc/self/mountinfo | cut -d" " -f6; done`)
    expect(flags).toHaveLength(5)
    for (const one of flags) expect(one.split(',')).toEqual(expect.arrayContaining(['nosuid', 'noexec']))
  })

  testWith('root', 'no mount of a run reaches a host whose mounts are shared', async () => {
    const { run, home, env } = await runAtHome()
    const script = `${MOUNTS} >${home}/before; ${run}; ${MOUNTS} >${home}/after; cmp ${home}/before ${home}/after; wc -l <${home}/after`
    const [shell = '', ...rest] = SHARED
    const { stdout } = await execa(shell, [...rest, script], { env })
    expect(Number(stdout)).toBeGreaterThan(5)
  })

  const COVERED: readonly (readonly [string, string, RegExp])[] = [
    ['/dev/full', 'a device', /stage: not that device/],
    ['/dev/null', 'the mask of /proc', /stage: not that device|proc: mask is not null/],
  ]
  for (const [node, what, step] of COVERED)
    testWith('root', `a user's file at ${node}, which is ${what}, is refused`, async () => {
      const { run, home, env } = await runAtHome()
      const file = join(home, 'file')
      execFileSync('touch', [file])
      const runAfter = (script: string) =>
        execa('unshare', ['--mount', '/bin/sh', '-ec', `${script} ${run} </dev/zero`], { env, reject: false })
      const refused = { exitCode: 125, stderr: expect.stringMatching(step) }
      expect(await runAfter(`mount --bind ${file} ${node};`)).toMatchObject(refused)
      expect((await runAfter('')).exitCode, 'the control').toBe(0)
    })
})

/* * Readable files of /proc, by a list written by hand: a file that a kernel adds is named here before it is let through, or is masked.
 * Programs that read /proc about the machine still work. */
/** Needed by programs, of the sandbox's own namespaces, or the same on every machine with this kernel. */
const READABLE = [
  ...['cpuinfo', 'loadavg', 'meminfo', 'stat', 'uptime', 'version', 'filesystems'], // libraries and runtimes ask for these
  ...['mounts', 'net', 'self', 'sysvipc', 'thread-self'], // the sandbox's own
  ...['crypto', 'devices', 'dma', 'execdomains', 'misc', 'tty', 'driver'], // what the kernel was built with and has loaded
  'locks', // of visible processes only
  ...['bus', 'fs', 'irq', 'sys', 'sysrq-trigger'], // read-only
  'cgroups', // one of our files: the contract's row about masks compares it
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

describeWith(['userns', 'one-user'], 'of /proc', () => {
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
