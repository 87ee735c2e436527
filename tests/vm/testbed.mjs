/**
 * The test machine: a Debian kernel with full cgroup v2 under qemu, without KVM, for what no container or CI host offers.
 *
 * Theory of operation: build-image makes kernel, initramfs and root disk once, in a cache directory named by a key over package
 * versions and builder sources. Each call packs the checkout (bin, dist, profiles, tests) as a second, read-only disk and boots
 * the machine twice: `plain` (our own script as PID 1) and `systemd`. Inside, guest/suite.mjs prints one line of JSON per check
 * on port 1 (stdout), free text on port 2 (stderr), its exit status on port 3; each port is a file here. qemu ends when the
 * guest resets. A boot whose console stays empty is tried again: under emulation one in several hangs before its first line.
 * So is one whose processors the guest's own watchdog reports as stuck: the emulator can lock up on a busy machine, too.
 *
 * Usage: run [--boot plain|systemd] [--keep]. The last line is `N passed, N failed`.
 */
import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const here = dirname(fileURLToPath(import.meta.url))
const project = join(here, '..', '..')

/** A healthy boot prints its first console line after 1-2 s. */
const SILENT_BOOT_MS = 40_000
const BOOT_TRIES = 4
/** Both processors of the emulator wait for each other, for 100 s or more; a machine that is only slow reports less. */
const LOCKED_UP = /soft lockup - CPU#\d+ stuck for \d{3,}s/
/** Far above what a suite needs (60-150 s, 400 s with a load of 15); a hung guest must not hang CI. */
const SUITE_MS = 600_000

const PROGRAMS = {
  'qemu-system-x86_64': 'qemu-system-x86',
  mmdebstrap: 'mmdebstrap',
  mke2fs: 'e2fsprogs',
  cpio: 'cpio',
  lz4: 'lz4',
  modprobe: 'kmod',
  strip: 'binutils',
  busybox: 'busybox-static',
  'musl-gcc': 'musl-tools',
}
/** The parts of the image, for the key: a new version of any of them makes a new image. */
const PACKAGES = 'linux-image-cloud-amd64 systemd dbus bubblewrap util-linux libstdc++6 busybox-static'.split(' ')
const BUILDERS = ['build-image', 'extract-vmlinux.mjs', 'guest/initramfs-init']

const print = (text) => process.stderr.write(`test-vm: ${text}\n`)
const run = (file, args, options = {}) =>
  execFileSync(file, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'], ...options })

function missingPrograms() {
  const path = `${process.env.PATH}:/usr/sbin:/sbin`.split(':')
  return Object.entries(PROGRAMS).filter(([program]) => !path.some((directory) => existsSync(join(directory, program))))
}

function imageKey() {
  const versions = run('apt-cache', ['policy', ...PACKAGES]).match(/^\S+:$|Candidate: .*/gm) ?? []
  const sources = BUILDERS.map((file) => readFileSync(join(here, file), 'utf8'))
  return createHash('sha256')
    .update(JSON.stringify([versions, sources, process.version]))
    .digest('hex')
    .slice(0, 16)
}

/** The cached image directory; a builder that dies half-way leaves nothing under the final name. */
function ensureImage() {
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'llm-do-test-vm')
  if (!/Candidate: \d/.test(run('apt-cache', ['policy', PACKAGES[0]]))) run('apt-get', ['-q=2', 'update'])
  const image = join(cache, imageKey())
  if (existsSync(image)) return image
  const building = `${image}.${process.pid}`
  mkdirSync(building, { recursive: true })
  try {
    run(join(here, 'build-image'), [building], { env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` } })
    renameSync(building, image)
  } finally {
    rmSync(building, { recursive: true, force: true })
  }
  return image
}

const JOB_PARTS = ['bin', 'dist', 'profiles', 'package.json', 'tests/vm', 'tests/programs']

/** Packs the checkout as an ext4 image that the guest mounts at /job. */
function packJob(work) {
  const tree = join(work, 'job')
  for (const part of JOB_PARTS) {
    if (existsSync(join(project, part))) cpSync(join(project, part), join(tree, part), { recursive: true })
  }
  run('musl-gcc', ['-static', '-O1', '-o', join(tree, 'tests/vm/guest/hog'), join(here, 'guest/hog.c')])
  const megabytes = Math.ceil(Number(run('du', ['-sm', tree]).split('\t')[0]) * 1.3) + 16
  const image = join(work, 'job.ext4')
  run('mke2fs', ['-q', '-t', 'ext4', '-F', '-O', '^has_journal', '-d', tree, image, `${megabytes}m`], {
    env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  return image
}

/** TSC frequency to announce, in kHz: without it the guest measures against an emulated timer and one boot in eight hangs. */
function tscKhz() {
  const mhz = /cpu MHz\s*: ([\d.]+)/.exec(readFileSync('/proc/cpuinfo', 'utf8'))
  return mhz ? Math.round(Number(mhz[1]) * 1000) : 2_000_000
}

function qemuArguments({ image, job, boot, log }) {
  const words = `console=ttyS0 loglevel=4 tsc=reliable tsc_early_khz=${tscKhz()} no_timer_check mitigations=off random.trust_cpu=on \
panic=-1 systemd.wants=job.service systemd.show_status=no vm.boot=${boot}`
  const port = (name, number) => [
    '-chardev',
    `file,id=${name},path=${join(log, name)}`,
    '-device',
    `virtserialport,chardev=${name},nr=${number}`,
  ]
  const drive = (name, options) => [
    '-drive',
    `id=${name},if=none,format=raw,${options}`,
    '-device',
    `virtio-blk-device,drive=${name}`,
  ]
  return [
    ...'-M microvm,acpi=on,pit=on,pic=on,rtc=on,isa-serial=on -accel tcg,thread=multi -cpu max -smp 2 -m 1024'.split(
      ' ',
    ),
    ...'-nodefaults -no-user-config -no-reboot -display none -serial chardev:console'.split(' '),
    ...['-chardev', `file,id=console,path=${join(log, 'console')}`],
    ...['-kernel', join(image, 'vmlinux'), '-initrd', join(image, 'initramfs'), '-append', words],
    ...drive('root', `snapshot=on,file=${join(image, 'root.ext4')}`),
    ...drive('job', `readonly=on,file=${job}`),
    ...['-device', 'virtio-serial-device', ...port('stdout', 1), ...port('stderr', 2), ...port('status', 3)],
  ]
}

/** TERM and INT end the machine first: an emulator left behind would eat a processor for ever. */
const interruption = new AbortController()
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.once(signal, () => interruption.abort())

const textOf = (file) => (existsSync(file) ? readFileSync(file, 'utf8') : '')

/** One try: boots, shows stderr of the guest as it comes, returns when qemu is gone. */
async function bootOnce({ image, job, boot, log }) {
  mkdirSync(log, { recursive: true })
  const qemu = spawn('qemu-system-x86_64', qemuArguments({ image, job, boot, log }), {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  let ended = false
  const exit = new Promise((resolve, reject) => qemu.once('error', reject).once('exit', resolve)).finally(() => {
    ended = true
  })
  const started = performance.now()
  let shown = 0
  try {
    while (!ended) {
      await Promise.race([exit, sleep(250)])
      const text = textOf(join(log, 'stderr'))
      process.stderr.write(text.slice(shown))
      shown = text.length
      const elapsed = performance.now() - started
      if (interruption.signal.aborted) return { end: 'interrupted' }
      const onConsole = textOf(join(log, 'console'))
      if (onConsole === '' && shown === 0 && elapsed > SILENT_BOOT_MS) return { end: 'silent' }
      if (LOCKED_UP.test(onConsole)) return { end: 'locked up' }
      if (elapsed > SUITE_MS) return { end: 'too slow', stdout: textOf(join(log, 'stdout')) }
    }
    return { end: 'reset', status: textOf(join(log, 'status')).trim(), stdout: textOf(join(log, 'stdout')) }
  } finally {
    qemu.kill('SIGKILL')
    await exit
  }
}

/** Ends that say nothing of what is tested, for people. */
const EMULATOR_FAILED = { silent: 'nothing on the console', 'locked up': 'the emulated processors are stuck' }

async function bootWithRetry(inputs) {
  let ended
  for (let attempt = 1; attempt <= BOOT_TRIES; attempt++) {
    const log = join(inputs.work, `${inputs.boot}-${attempt}`)
    print(`boot ${inputs.boot}${attempt > 1 ? `, try ${attempt}` : ''}`)
    ended = { ...(await bootOnce({ ...inputs, log })), console: textOf(join(log, 'console')) }
    const failed = EMULATOR_FAILED[ended.end]
    if (failed === undefined || interruption.signal.aborted) break
    print(`${failed}, booting again`)
  }
  return ended
}

/** Lines of JSON to checks; a boot that did not finish its suite is one failed check more, whatever it printed. */
function checksOf(boot, ended) {
  const lines = (ended.stdout ?? '').split('\n').filter((line) => line.startsWith('{'))
  const checks = lines.map((line) => ({ boot, ...JSON.parse(line) }))
  const finished = ended.end === 'reset' && ended.status !== ''
  if (finished && checks.length > 0) return checks
  const detail = `ended: ${ended.end}, status: ${ended.status || 'none'}, console ends: ${(ended.console ?? '').slice(-1500)}`
  return [...checks, { boot, title: 'the suite runs to its end', ok: false, detail }]
}

async function main() {
  const { values } = parseArgs({ options: { boot: { type: 'string', multiple: true }, keep: { type: 'boolean' } } })
  const missing = missingPrograms()
  if (missing.length > 0) {
    print(
      `missing: ${missing.map(([program]) => program).join(', ')}. apt-get install ${missing.map(([, name]) => name).join(' ')}`,
    )
    return 1
  }
  const started = performance.now()
  const work = mkdtempSync(join(tmpdir(), 'llm-do-test-vm-'))
  try {
    const image = ensureImage()
    const job = packJob(work)
    print(
      `image ready after ${((performance.now() - started) / 1000).toFixed(1)} s (${(statSync(job).size / 2 ** 20).toFixed(0)} MiB job)`,
    )
    const checks = []
    // Not at the same time: four emulated processors on two wait for each other, and took 640 instead of 400 processor seconds.
    for (const boot of values.boot ?? ['plain', 'systemd']) {
      if (interruption.signal.aborted) break
      checks.push(...checksOf(boot, await bootWithRetry({ image, job, boot, work })))
    }
    for (const check of checks)
      console.log(
        `${check.ok ? 'ok  ' : 'FAIL'} ${check.boot}: ${check.title}${check.ok ? '' : `\n     ${check.detail ?? ''}`}`,
      )
    const failed = checks.filter((check) => !check.ok).length
    print(`${Math.round((performance.now() - started) / 1000)} s`)
    console.log(`${checks.length - failed} passed, ${failed} failed`)
    return failed === 0 && !interruption.signal.aborted ? 0 : 1
  } finally {
    if (!values.keep) rmSync(work, { recursive: true, force: true })
    else print(`kept ${work}`)
  }
}

process.exitCode = await main()
