/**
 * Meaning of a probe's failures and the narrowest fix for each: one table for the plan's refusals and the doctor.
 * Pure. Messages are those of bubblewrap 0.8 and util-linux, seen in containers and virtual machines; the AppArmor ones are Ubuntu 24.04's.
 */
import { posix } from 'node:path'
import { shellWord } from '../text/shell-word.ts'
import type { Probe, Surroundings } from './facts.ts'

/** The reason why something cannot be had, and the fix. */
export interface Lack {
  /** One clause, without a full stop. */
  readonly why: string
  /** A command where it can be one; empty when nothing helps. */
  readonly fix: string
}

interface Row {
  readonly name: string
  readonly matches: RegExp
  /** Tells apart causes that look alike from inside. */
  readonly when?: (around: Surroundings) => boolean
  readonly why: string
  readonly fix: (program: string, around: Surroundings) => string
}

const APPARMOR = 'kernel.apparmor_restrict_unprivileged_userns'
const CLONE = 'kernel.unprivileged_userns_clone'
/** One number for each kind of namespace that a sandbox has, each of them per user namespace. */
const LIMITS = ['user', 'pid', 'mnt', 'net', 'ipc', 'uts', 'cgroup'].map((kind) => `user.max_${kind}_namespaces`)

/** The sysctls that explain a refusal of namespaces; probe.ts reads them, nothing decides by them. */
export const EXPLAINING_SETTINGS: readonly string[] = [APPARMOR, CLONE, ...LIMITS]

/** Value of `Surroundings.container` inside a sandbox of our own. */
export const OWN_SANDBOX = 'llm-do'

const NO_NAMESPACE =
  /No permissions to creat\w+ (a )?new namespace|unshare failed: Operation not permitted|\bclone\b.*EPERM|unshare.*EPERM/

/** The profile that came with the program, else one made for it; not the system-wide switch: everything else stays restricted. */
function appArmorProfile(program: string, { appArmorProfile: own }: Surroundings): string {
  if (own !== undefined && posix.dirname(program) === posix.join(posix.dirname(own), 'bin'))
    return `sudo cp ${shellWord(own)} /etc/apparmor.d/llm-do && sudo apparmor_parser -r /etc/apparmor.d/llm-do`
  const name = program.split('/').filter(Boolean).join('.')
  // Our command has two names.
  const place = posix.basename(program) === 'llm-do' ? `"${posix.dirname(program)}/{llm-do,llm-do-exec}"` : program
  return (
    `printf 'abi <abi/4.0>,\\nprofile ${name} ${place} flags=(unconfined) {\\n  userns,\\n}\\n' | ` +
    `sudo tee /etc/apparmor.d/${name} && sudo apparmor_parser -r /etc/apparmor.d/${name}`
  )
}

/** No system has so few namespaces by default: an administrator has set the limit. */
const FEW = 64
const ENOUGH = 15_000

/** Of those that somebody has set; of all where none is low, because the limit may be that of a user namespace around this one. */
function raiseLimits({ settings }: Surroundings): string {
  const low = LIMITS.filter((name) => Number(settings[name] ?? ENOUGH) < FEW)
  return `sudo sysctl -w ${(low.length === 0 ? LIMITS : low).map((name) => `${name}=${ENOUGH}`).join(' ')}`
}

/** A user namespace inside, whose caller is not root and has both ids. */
const AS_ANOTHER_ID = 'unshare --user --map-user=1000 --map-group=1000 llm-do exec ...'

/** The message for every sandbox inside of one of our own, whatever it would fail of first. */
export const INSIDE_OWN_SANDBOX: Lack = {
  why: 'this is inside a sandbox of llm-do exec, where no further one with namespaces can be built (--seccomp nested lets bubblewrap and browsers build theirs)',
  fix: 'llm-do exec --backend no-namespaces ...   # Landlock and a filter, in the walls of the sandbox around it',
}

/** From outside. The kernel takes for a chroot what is not the root of its mount namespace. */
const NO_CHROOT =
  "from outside: sudo unshare --mount sh -c 'mount --rbind DIR DIR && cd DIR && mount --move . / && exec chroot . llm-do exec ...'; or, with fewer walls, on Linux 6.12 or later: --backend no-namespaces"

const CONTAINER_FIX =
  'start the container with --security-opt seccomp=unconfined --security-opt systempaths=unconfined (where the machine has AppArmor also apparmor=unconfined; user 1000, all capabilities dropped), see docs/guide/ci.md; or, with fewer walls, on Linux 6.12 or later: --backend no-namespaces'

/** First row that matches wins. */
const EXPLANATIONS: readonly Row[] = [
  {
    name: 'own-sandbox',
    matches: new RegExp(`${NO_NAMESPACE.source}|\\bstage: (fsopen|make mounts private):.*(ENOSYS|EPERM)`),
    when: (around) => around.container === OWN_SANDBOX,
    why: INSIDE_OWN_SANDBOX.why,
    fix: () => INSIDE_OWN_SANDBOX.fix,
  },
  {
    name: 'no-staging',
    matches: /\bstage: mount root:.*ENOENT/,
    why: 'the directory /sys is missing; the root of a sandbox is assembled there',
    fix: () => 'sudo mkdir /sys',
  },
  {
    name: 'chroot-mounts',
    matches: /\bstage: make mounts private:.*EINVAL/,
    why: 'this is a chroot: / is not a mount point, so mounts in it cannot be made private',
    fix: () => NO_CHROOT,
  },
  {
    name: 'chroot',
    matches: NO_NAMESPACE,
    when: (around) => around.chroot === true,
    why: 'this is a chroot, in which the kernel makes no user namespace',
    fix: () => NO_CHROOT,
  },
  {
    name: 'groups',
    matches: /\bstage: setgroups:.*EPERM/,
    why: 'root may not change its groups here: in a user namespace that has only its own ids (unshare -r), or without CAP_SETGID',
    fix: () => AS_ANOTHER_ID,
  },
  {
    name: 'unmapped',
    matches: NO_NAMESPACE,
    when: (around) => around.unmapped === true,
    why: 'this user or its group has no id in the user namespace around it, and then the kernel makes no further one',
    fix: () => `in the place of the unshare around it: ${AS_ANOTHER_ID}`,
  },
  {
    name: 'apparmor-uid-map',
    matches: /setting up uid map: Permission denied|uid_map.*(EACCES|EPERM|Permission denied|not permitted)/,
    why: 'AppArmor denies capabilities inside user namespaces to programs without a profile (Ubuntu 24.04 and later)',
    fix: appArmorProfile,
  },
  {
    name: 'apparmor-loopback',
    matches: /loopback: Failed RTM_NEWADDR: Operation not permitted|RTM_NEW(ADDR|LINK).*EPERM/,
    why: 'AppArmor denies capabilities inside user namespaces to programs without a profile (Ubuntu 24.04 and later)',
    fix: appArmorProfile,
  },
  {
    name: 'namespace-limit',
    matches:
      /nesting depth or \/proc\/sys\/user\/max_\*_namespaces exceeded|\b(launch: clone|(stage|engine): unshare [\w ]+|unshare failed):.*(ENOSPC|No space left on device)/,
    why: 'the kernel allows no further namespaces (user.max_*_namespaces, or --disable-userns of an outer sandbox)',
    fix: (_, around) => raiseLimits(around),
  },
  {
    name: 'mount-limit',
    matches: /\bstage: (open_tree|move_mount|mount\b[\w ]*|clone layer|open (zone|copy|device)):.*ENOSPC/,
    why: 'there are as many mounts as one mount namespace may have (fs.mount-max)',
    fix: () => 'sudo sysctl -w fs.mount-max=200000   # or unmount some: findmnt',
  },
  {
    name: 'no-space',
    matches: /ENOSPC|EDQUOT|No space left on device/,
    why: 'the file system that this step writes to is full, or has no files left',
    fix: () => 'df -h; df -i   # and make room there; /run and /tmp may be memory',
  },
  {
    name: 'no-descriptors',
    matches: /EMFILE|ENFILE|Too many open files/,
    why: 'no more files may be open (ulimit -n, or fs.file-max of the whole system)',
    fix: () => 'ulimit -n 1024',
  },
  {
    name: 'file-size',
    matches: /EFBIG|File too large/,
    why: 'the caller may not write files of that size, files in memory included (ulimit -f)',
    fix: () => 'ulimit -f unlimited',
  },
  {
    name: 'clone-disabled',
    matches: NO_NAMESPACE,
    when: (around) => around.settings[CLONE] === '0',
    why: 'this kernel reserves user namespaces for root (kernel.unprivileged_userns_clone=0)',
    fix: () => 'sudo sysctl -w kernel.unprivileged_userns_clone=1',
  },
  {
    name: 'apparmor-denies-clone',
    matches: NO_NAMESPACE,
    when: (around) => around.settings[APPARMOR] === '1',
    why: 'AppArmor denies user namespaces to programs without a profile',
    fix: appArmorProfile,
  },
  {
    name: 'container-seccomp',
    matches: NO_NAMESPACE,
    when: (around) => around.filtered,
    why: 'the seccomp filter of the surrounding container forbids new namespaces',
    fix: () => CONTAINER_FIX,
  },
  {
    name: 'no-namespace',
    matches: NO_NAMESPACE,
    why: 'the kernel does not let this user make namespaces',
    fix: () => 'sudo sysctl -w kernel.unprivileged_userns_clone=1 user.max_user_namespaces=15000',
  },
  {
    name: 'masked-proc',
    matches: /Can't mount proc|mount.*proc.*(EPERM|Operation not permitted)/,
    why: '/proc of the surrounding container is masked, and the kernel then allows no fresh one inside',
    fix: () => CONTAINER_FIX,
  },
  {
    name: 'container-apparmor',
    matches: /Failed to make \/ slave: Permission denied|\bstage: make mounts private:.*EACCES/,
    why: 'the AppArmor profile of the surrounding container forbids mounts',
    fix: () => CONTAINER_FIX,
  },
  {
    name: 'pivot-root',
    matches: /pivot_root: Operation not permitted|pivot_root.*EPERM/,
    why: 'the surrounding container may mount but its seccomp or AppArmor profile forbids pivot_root',
    fix: () => CONTAINER_FIX,
  },
  {
    name: 'docker-socket',
    matches:
      /permission denied while trying to connect to the (Docker daemon|docker API)|dial unix .*permission denied/i,
    why: 'this user may not use the socket of the Docker daemon',
    fix: () =>
      'use rootless Docker (dockerd-rootless-setuptool.sh install); membership in the docker group is the same as root',
  },
  {
    name: 'docker-down',
    matches:
      /Cannot connect to the Docker daemon|Is the docker daemon running|connection refused|failed to connect to the docker API/i,
    why: 'the Docker daemon does not answer',
    fix: () => 'sudo systemctl start docker (or start Docker Desktop), or point DOCKER_HOST at a daemon that runs',
  },
  {
    name: 'timeout',
    matches: /timed out|ETIMEDOUT/,
    why: 'the probe did not end in time',
    fix: () => 'llm-do doctor',
  },
]

const NOTHING_KNOWN: Surroundings = { filtered: false, settings: {} }

/**
 * Says what a failed probe means.
 * @param program the executable that needs the permission, for fixes that name it
 */
export function explainFailure(
  failure: Extract<Probe, { ok: false }>,
  { program, around = NOTHING_KNOWN }: { program: string; around?: Surroundings | undefined },
): Lack {
  const text = `${failure.step}: ${failure.message} ${failure.errno}`
  const row = EXPLANATIONS.find(({ matches, when }) => matches.test(text) && (when?.(around) ?? true))
  return row === undefined ? { why: reportedText(failure), fix: '' } : { why: row.why, fix: row.fix(program, around) }
}

function reportedText({ step, errno, message }: Extract<Probe, { ok: false }>): string {
  const words = message || errno
  return words.startsWith(`${step}:`) ? words : [step, words].filter(Boolean).join(': ')
}

/** Names of the rows, for tests that want every one seen. */
export const EXPLAINED = EXPLANATIONS.map(({ name }) => name)
