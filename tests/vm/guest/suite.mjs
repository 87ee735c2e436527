/**
 * The suites of one boot: the caller, and its cgroup. Each caller is a new process that runs cases.mjs there and prints
 * one line of JSON per check.
 */
import { spawnSync } from 'node:child_process'
import { chownSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'

const ROOT = '/sys/fs/cgroup'
const CASES = ['node', '/job/tests/vm/guest/cases.mjs']

/** Runs the cases of one caller; its lines go to our stdout, and its failure is one more check. */
function call({ caller, as = [], expect }) {
  const [file, ...words] = [...as, ...CASES, JSON.stringify({ caller, ...expect })]
  const { status, error } = spawnSync(file, words, { stdio: ['ignore', 'inherit', 'inherit'] })
  console.log(
    JSON.stringify({
      title: `${caller}: all cases were run`,
      ok: status === 0,
      detail: `status ${status} ${error ?? ''}`,
    }),
  )
}

const user = (id, home, variables = []) => [
  ...`setpriv --reuid ${id} --regid ${id} --clear-groups --inh-caps=-all env HOME=${home}`.split(' '),
  ...variables,
]
/** Starts what follows in a cgroup. */
const inGroup = (group) => ['sh', '-c', 'echo 0 > "$1/cgroup.procs" && shift && exec "$@"', 'sh', group]

const KERNEL = { memory: 'cgroup2', pids: 'cgroup2', cpus: 'cgroup2' }
const AND_DISKS = { ...KERNEL, io: 'cgroup2' }
const NO_KERNEL = { memory: 'watchdog', pids: 'rlimit', cpus: 'affinity' }

/** An administrator's steps to delegate a part of the tree (cgroup-v2.rst, "Delegation"). */
function delegate(group, id) {
  mkdirSync(group)
  for (const name of ['memory', 'pids', 'cpu', 'io']) writeFileSync(`${ROOT}/cgroup.subtree_control`, `+${name}`)
  for (const file of ['', '/cgroup.procs', '/cgroup.subtree_control', '/cgroup.threads'])
    chownSync(`${group}${file}`, id, id)
}

/** Settings by which distributions and administrators forbid user namespaces; only a machine of one's own lets them be set. */
const FORBIDDING = ['kernel/unprivileged_userns_clone', 'user/max_user_namespaces']

/** Without user namespaces a plain user is refused, and nothing runs. Each try has a new cache: the probe must be made again. */
function checkForbidden(setting) {
  const file = `/proc/sys/${setting}`
  const before = readFileSync(file, 'utf8')
  const cache = mkdtempSync('/tmp/cache-')
  chownSync(cache, 1000, 1000)
  writeFileSync(file, '0')
  const as = user(1000, '/tmp', [`XDG_CACHE_HOME=${cache}`])
  const [program, ...words] = [...as, ...'/job/bin/llm-do exec -- echo ran'.split(' ')]
  const { status, stdout, stderr } = spawnSync(program, words, { cwd: '/tmp', encoding: 'utf8' })
  writeFileSync(file, before)
  const name = setting.replaceAll('/', '.')
  const ok = status === 125 && stdout === '' && stderr.includes(name) && stderr.includes('hint')
  console.log(
    JSON.stringify({
      title: `with ${name}=0 a plain user is refused and told of the setting`,
      ok,
      detail: `${status} ${stdout} ${stderr}`,
    }),
  )
}

/** The doctor's list of lacks, for a user whose runtime directory, where it could remember that, is there without a manager. */
function lackingFor(id) {
  const own = `/tmp/runtime-${id}`
  mkdirSync(own, { recursive: true, mode: 0o700 })
  chownSync(own, id, id)
  const [program, ...words] = [...user(id, '/tmp', [`XDG_RUNTIME_DIR=${own}`]), '/job/bin/llm-do', 'doctor', '--facts']
  const { stdout, stderr } = spawnSync(program, words, { cwd: '/tmp', encoding: 'utf8' })
  return stdout === '' ? `no facts: ${stderr}` : JSON.parse(stdout).cgroup.lacking
}

/** A repair is seen at once: nothing that a manager has not said is remembered. */
function checkManagerComes(id) {
  const before = [lackingFor(id), lackingFor(id)]
  const { status } = spawnSync('systemctl', ['start', `user@${id}.service`], { stdio: 'inherit' })
  const after = lackingFor(id)
  const isSilent = (text) => text.includes('no systemd user manager answers')
  console.log(
    JSON.stringify({
      title: 'a manager of the user that is started counts for the next look',
      ok: status === 0 && before.every(isSilent) && !isSilent(after) && !after.startsWith('no facts'),
      detail: JSON.stringify({ status, before, after }),
    }),
  )
}

function plainBoot() {
  call({ caller: 'root, --engine unshare', expect: { by: AND_DISKS, parent: ROOT, engine: 'unshare' } })
  // The rung is the same, and so is what it holds, whichever program makes the namespaces.
  call({ caller: 'root, --engine bwrap', expect: { by: KERNEL, parent: ROOT, engine: 'bwrap', few: true } })
  delegate(`${ROOT}/plain`, 1000)
  call({
    caller: 'user, delegated',
    as: [...inGroup(`${ROOT}/plain`), ...user(1000, '/home/plain')],
    expect: { by: AND_DISKS, parent: `${ROOT}/plain` },
  })
  mkdirSync(`${ROOT}/given`)
  call({
    caller: 'root, --cgroup-parent',
    expect: { by: KERNEL, parent: `${ROOT}/given`, cgroupParent: `${ROOT}/given`, few: true },
  })
  call({ caller: 'user, nothing given', as: user(1000, '/tmp'), expect: { by: NO_KERNEL, ioFix: 'chown it' } })
  for (const setting of FORBIDDING) checkForbidden(setting)
}

function systemdBoot() {
  const session = ['XDG_RUNTIME_DIR=/run/user/1001', 'DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1001/bus']
  const lingering = user(1001, '/home/lingering', session)
  const scope = ['systemd-run', '--user', '--scope', '--quiet']
  const slice = `${ROOT}/user.slice/user-1001.slice/user@1001.service/app.slice`
  call({ caller: 'root', expect: { by: AND_DISKS, parent: `${ROOT}/system.slice/llm-do-exec.service`, few: true } })
  call({
    caller: 'user, delegated scope',
    as: [...lingering, ...scope, '-p', 'Delegate=yes', '--unit=given'],
    expect: { by: KERNEL, parent: `${slice}/given.scope`, few: true },
  })
  call({
    caller: 'user, plain scope',
    as: [...lingering, ...scope],
    expect: { by: KERNEL, parent: `${slice}/llm-do-exec.service`, ioFix: 'Delegate=cpu cpuset io memory pids' },
  })
  call({
    caller: 'user, outside the manager',
    as: user(1001, '/tmp', session),
    expect: { by: NO_KERNEL, few: true, fix: 'systemd-run --user --scope' },
  })
  checkManagerComes(1000)
}

const boots = { plain: plainBoot, systemd: systemdBoot }
boots[process.argv[2]]()
