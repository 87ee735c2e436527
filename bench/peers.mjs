// Other ways to run one command apart from the host, each as strictly as it is usually asked to be: one writable directory, no network, bounds
// where it has any. A peer that could not be run here has no adapter, only its reason: an untried command line says nothing about it.
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { findProgram, NAIVE } from './bwrap.mjs'
import { NPM_PEERS, program as npmProgram } from './npm-peers.mjs'
import { ROOT } from './stage.mjs'

/** Limits for each, in its own words. */
export const BOUNDS = { memory: 64 * 1024 ** 2, processes: 50, seconds: 10 }

const MEBIBYTES = String(BOUNDS.memory / 1024 ** 2)
const NO_SETUID_PATH = '/usr/local/bin:/usr/bin:/bin'

/* ---- trees: a root that shows the host's programs and nothing else ---- */

const LINKS = ['bin', 'sbin', 'lib', 'lib64']

function makeRoot(stage, name) {
  const root = join(stage.directory, name)
  for (const directory of ['usr', 'proc', 'sys', 'dev', 'tmp', 'etc', stage.cwd])
    mkdirSync(join(root, directory), { recursive: true })
  for (const link of LINKS) symlinkSync(`usr/${link}`, join(root, link))
  return root
}

/* ---- bubblewrap, util-linux ---- */

const naive = ({ cwd }) => ({ argv: (words) => [...NAIVE, '--bind', cwd, cwd, ...words] })

const strictBwrap = ({ cwd }) => {
  const links = LINKS.flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`])
  const walls = ['--unshare-all', '--die-with-parent', '--new-session', '--cap-drop', 'ALL', '--clearenv']
  const tree = ['--ro-bind', '/usr', '/usr', ...links, '--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp']
  const variables = ['--setenv', 'PATH', NO_SETUID_PATH]
  return { argv: (words) => ['bwrap', ...walls, ...tree, '--bind', cwd, cwd, '--chdir', cwd, ...variables, ...words] }
}

const UNSHARED = ['--user', '--map-root-user', '--pid', '--fork', '--kill-child', '--mount', '--mount-proc', '--net']
const unshare = () => ({ argv: (words) => ['unshare', ...UNSHARED, '--ipc', '--uts', '--cgroup', ...words] })

/* ---- setuid and Landlock ---- */

const firejail = ({ cwd }) => ({
  hasDeadline: true,
  argv: (words, { seconds = BOUNDS.seconds } = {}) => [
    'firejail',
    '--quiet',
    '--noprofile',
    '--net=none',
    '--caps.drop=all',
    '--nonewprivs',
    '--seccomp',
    '--ipc-namespace',
    '--private',
    '--private-dev',
    `--whitelist=${cwd}`,
    '--read-only=/',
    `--read-write=${cwd}`,
    `--rlimit-as=${BOUNDS.memory}`,
    `--rlimit-nproc=${BOUNDS.processes}`,
    `--timeout=00:00:${String(seconds).padStart(2, '0')}`,
    ...words,
  ],
})

/** Programs of a newer Debian, with the libraries that they need, unpacked there and started by their own loader. */
const NEWER = join(ROOT, 'build/peers/newer')
const OF_MACHINE = {
  x64: { libraries: 'usr/lib/x86_64-linux-gnu', loader: 'ld-linux-x86-64.so.2' },
  arm64: { libraries: 'usr/lib/aarch64-linux-gnu', loader: 'ld-linux-aarch64.so.1' },
}
const { libraries, loader } = OF_MACHINE[process.arch]
const newer = (name) => [
  join(NEWER, libraries, loader),
  '--library-path',
  join(NEWER, libraries),
  join(NEWER, 'usr/bin', name),
]

const landrun = ({ cwd }) => {
  const programs = ['--rox', '/usr,/bin,/lib,/lib64', '--env', `PATH=${NO_SETUID_PATH}`]
  return { argv: (words) => [...newer('landrun'), '--best-effort', ...programs, '--rwx', cwd, ...words] }
}

/** No filter of system calls: minijail brings none, each user writes one. */
const minijail = (stage) => {
  const root = makeRoot(stage, 'minijail')
  const walls = ['-p', '-l', '-e', '-N', '--uts', '-n', '-w', '-c', '0', '--ambient', '--env-reset']
  const tree = ['-P', root, '-k', 'proc,/proc,proc,0xe', '-b', '/usr,/usr', '-d', '-b', `${stage.cwd},${stage.cwd},1`]
  const bounds = ['-R', `9,${BOUNDS.memory},${BOUNDS.memory}`, '-R', `6,${BOUNDS.processes},${BOUNDS.processes}`]
  // It starts the program in the root directory.
  const there = (words) => ['/usr/bin/env', '-C', stage.cwd, ...words]
  return {
    argv: (words) => [
      ...newer('minijail0'),
      '--logging=stderr',
      '-T',
      'static',
      ...walls,
      ...tree,
      ...bounds,
      '--',
      ...there(words),
    ],
  }
}

/* ---- OCI runtimes ---- */

function ociBundle({ stage, runtime, words }) {
  const directory = mkdtempSync(join(stage.directory, `${runtime}-`))
  makeRoot({ ...stage, directory }, 'rootfs')
  const rootless = process.getuid() === 0 ? [] : ['--rootless']
  const made = stage.run([runtime, 'spec', ...rootless], { cwd: directory })
  if (made.status !== 0) throw new Error(`${runtime} spec: ${made.stderr}`)
  const file = join(directory, 'config.json')
  const settings = JSON.parse(readFileSync(file, 'utf8'))
  const bind = (path, mode) => ({ destination: path, source: path, type: 'none', options: ['rbind', mode] })
  Object.assign(settings.process, { terminal: false, args: words, cwd: stage.cwd, noNewPrivileges: true })
  settings.process.capabilities = {}
  settings.mounts.push(bind('/usr', 'ro'), bind(stage.cwd, 'rw'))
  settings.linux.resources = {
    ...settings.linux.resources,
    memory: { limit: BOUNDS.memory },
    pids: { limit: BOUNDS.processes },
  }
  writeFileSync(file, JSON.stringify(settings))
  return directory
}

const ociRuntime = (runtime) => (stage) => {
  const state = join(stage.directory, `${runtime}-state`)
  return {
    argv: (words) => {
      const bundle = ociBundle({ stage, runtime, words })
      return ['sh', '-c', 'exec "$0" --root "$1" run --bundle "$2" llm-do-bench-$$', runtime, state, bundle]
    },
  }
}

/* ---- containers ---- */

const containerWords = ({ cwd }) => [
  'run',
  '--rm',
  '--network=none',
  '--read-only',
  '--cap-drop=all',
  '--security-opt=no-new-privileges',
  `--memory=${MEBIBYTES}m`,
  `--pids-limit=${BOUNDS.processes}`,
  '--volume=/usr:/usr:ro',
  `--volume=${cwd}:${cwd}`,
  `--workdir=${cwd}`,
]

/** In a separate storage, without an image. */
const podman = (stage) => {
  const at = (name) => join(stage.directory, 'podman', name)
  mkdirSync(at('.'), { recursive: true })
  const engine = `[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "none"\ntmp_dir = "${at('tmp')}"\n`
  writeFileSync(at('containers.conf'), engine)
  writeFileSync(
    at('storage.conf'),
    `[storage]\ndriver = "vfs"\ngraphroot = "${at('graph')}"\nrunroot = "${at('run')}"\n`,
  )
  const root = makeRoot(stage, 'podman-root')
  return {
    hasDeadline: true,
    env: { CONTAINERS_CONF: at('containers.conf'), CONTAINERS_STORAGE_CONF: at('storage.conf') },
    argv: (words, { seconds = BOUNDS.seconds } = {}) => [
      'podman',
      ...containerWords(stage),
      `--timeout=${seconds}`,
      '--ulimit=host',
      '--rootfs',
      root,
      ...words,
    ],
  }
}

const DOCKER_START_MS = 30_000

/** A separate daemon, and an image of links into the host's /usr: nothing of the machine's is touched, nothing is fetched. */
async function docker(stage) {
  const at = (name) => join(stage.directory, 'docker', name)
  mkdirSync(at('.'), { recursive: true })
  const env = { DOCKER_HOST: `unix://${at('socket')}` }
  const places = ['--data-root', at('data'), '--exec-root', at('exec'), '--pidfile', at('pid')]
  const closed = ['--bridge=none', '--iptables=false', '--ip6tables=false', '--storage-driver=vfs']
  const daemon = spawn('dockerd', ['--host', env.DOCKER_HOST, ...places, ...closed], {
    env: stage.env,
    stdio: 'ignore',
  })
  const ended = new Promise((resolve) => {
    daemon.once('exit', resolve)
    daemon.once('error', resolve)
  })
  const close = async () => {
    daemon.kill('SIGTERM')
    await ended
  }
  const client = (words) => stage.run(words, { env: { ...stage.env, ...env } }).status === 0
  try {
    const end = Date.now() + DOCKER_START_MS
    while (!client(['docker', 'version'])) {
      if (daemon.exitCode !== null || Date.now() > end) throw new Error('its daemon does not start')
      await sleep(100)
    }
    const root = makeRoot(stage, 'docker-root')
    if (!client(['sh', '-c', 'tar -C "$1" -c . | docker import - llm-do-bench:1', 'sh', root]))
      throw new Error('it takes no image')
  } catch (error) {
    await close()
    throw error
  }
  return { env, close, argv: (words) => ['docker', ...containerWords(stage), 'llm-do-bench:1', ...words] }
}

/* ---- systemd ---- */

const systemdRun = ({ cwd }) => {
  const properties = [
    'ProtectSystem=strict',
    'ProtectHome=tmpfs',
    `ReadWritePaths=${cwd}`,
    `WorkingDirectory=${cwd}`,
    'PrivateNetwork=yes',
    'PrivateDevices=yes',
    'PrivateUsers=yes',
    'ProtectProc=invisible',
    'ProtectKernelTunables=yes',
    'ProtectKernelLogs=yes',
    'ProtectControlGroups=yes',
    'RestrictNamespaces=yes',
    'NoNewPrivileges=yes',
    'CapabilityBoundingSet=',
    'SystemCallFilter=@system-service',
    `MemoryMax=${BOUNDS.memory}`,
    `TasksMax=${BOUNDS.processes}`,
  ].flatMap((property) => ['-p', property])
  return {
    hasDeadline: true,
    argv: (words, { seconds = BOUNDS.seconds } = {}) => [
      'systemd-run',
      '--quiet',
      '--wait',
      '--pipe',
      '--collect',
      ...properties,
      '-p',
      `RuntimeMaxSec=${seconds}`,
      ...words,
    ],
  }
}

/* ---- ours ---- */

/** The options that a pool has to be started with, too. */
export const OUR_BOUNDS = ['--rw', '.', '--memory', `${MEBIBYTES}m`, '--pids', String(BOUNDS.processes)]

const ours =
  (...options) =>
  ({ exec }) => ({
    hasDeadline: true,
    argv: (words, { seconds } = {}) => [
      exec,
      ...OUR_BOUNDS,
      ...options,
      ...(seconds === undefined ? [] : ['--timeout', `${seconds}s`]),
      '--',
      ...words,
    ],
  })

export const OURS = { cold: ours('--pool', 'off'), warm: ours() }

/* ---- all of them ---- */

const npmPeer = (name) => (stage) => {
  const { env, argv } = NPM_PEERS[name](stage)
  return { env, argv: (words) => argv({ words }) }
}

const FROM_NEWER_DEBIAN = `unpack a newer Debian's package and its libraries into ${NEWER}`
const FROM_NPM = 'node bench/npm-peers.mjs'

/** Name -> what makes of a stage the command line of a run there. Without `hint` Debian's package has the name of the program. */
const ADAPTERS = {
  'naive bwrap': { program: 'bwrap', make: naive, hint: 'apt-get install bubblewrap' },
  'strict bwrap': { program: 'bwrap', make: strictBwrap, hint: 'apt-get install bubblewrap' },
  unshare: { program: 'unshare', make: unshare, hint: 'apt-get install util-linux' },
  landrun: { program: newer('landrun').at(-1), make: landrun, hint: FROM_NEWER_DEBIAN },
  minijail: { program: newer('minijail0').at(-1), make: minijail, hint: FROM_NEWER_DEBIAN },
  firejail: { program: 'firejail', make: firejail },
  crun: { program: 'crun', make: ociRuntime('crun') },
  runc: { program: 'runc', make: ociRuntime('runc') },
  podman: { program: 'podman', make: podman },
  docker: { program: 'dockerd', make: docker, hint: 'apt-get install docker.io' },
  srt: { program: npmProgram('srt'), make: npmPeer('srt'), hint: FROM_NPM },
  codex: { program: npmProgram('codex'), make: npmPeer('codex'), hint: FROM_NPM },
  'systemd-run': { program: 'systemd-run', make: systemdRun, hint: 'apt-get install systemd' },
}

/** How they were looked for where this was written, on a machine that reaches packages of Debian and npm alone. */
export const NOT_TO_BE_HAD = {
  'go-judge': 'go install does not reach its module',
  isolate: 'no package in this Debian, nor in unstable',
  nsjail: 'no package in this Debian, nor in unstable',
  sandlock: 'pip finds no distribution of it',
  nono: 'cargo does not reach its registry',
}

/** @returns the peers that run `true` here, and for each other one the reason */
export async function openPeers(stage) {
  const here = []
  const missing = Object.entries(NOT_TO_BE_HAD).map(([name, reason]) => ({ name, missing: reason }))
  for (const [name, adapter] of Object.entries(ADAPTERS)) {
    try {
      here.push({ name, ...(await openPeer(stage, adapter)) })
    } catch (error) {
      missing.push({ name, missing: error.message })
    }
  }
  return { here, missing }
}

async function openPeer(stage, { program, make, hint = `apt-get install ${program}` }) {
  if (!(isAbsolute(program) ? existsSync(program) : findProgram(program)))
    throw new Error(`not installed (hint: ${hint})`)
  const peer = await make(stage)
  const words = peer.argv(['true'])
  const { status, error, stderr } = stage.run(words, { env: { ...stage.env, ...peer.env }, timeout: 30_000 })
  if (status === 0) return peer
  await peer.close?.()
  const message = stderr?.toString().trim().split('\n').at(-1) ?? ''
  throw new Error(`does not run here: ${error?.message ?? (message || `status ${status}`)}`)
}
