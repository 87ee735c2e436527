/**
 * The part of the tree that is not the user's: programs and libraries, a chosen list of /etc, and the directories above every mount.
 * Pure. /proc and /dev are made by the launcher; scratch file systems are in `plan.scratch`.
 */
import { posix } from 'node:path'
import { NET_ADDRESS } from '../contract.ts'
import type { GitIdentity } from '../network/tools/git.ts'
import type { NetworkPolicy } from '../policy/values.ts'
import { type PathFacts, pathFact } from './mounts.ts'
import type { PlannedZone, Scratch, SystemEntry } from './plan.ts'
import { ancestorsOf, byText, isBelow, isWithin, RUNTIME_ROOTS } from './well-known-paths.ts'

/** Numeric identity inside; the name is the home directory's. */
export const SANDBOX_UID = 1000
export const SANDBOX_GID = 1000
export const HOSTNAME = 'sandbox'

/**
 * Files and directories of /etc that programs need and that hold no secret. What is not here does not exist inside: passwords,
 * host keys, package sources (with their logins), system-wide git and npm settings (with their tokens), mail, cron, sudo.
 */
const ETC = [
  // the dynamic linker and the alternatives system
  'ld.so.cache',
  'ld.so.conf',
  'ld.so.conf.d',
  'ld-musl-x86_64.path',
  'ld-musl-aarch64.path',
  'alternatives',
  // certificates, public ones only: never ssl/private or pki/tls/private
  'ssl/certs',
  'ssl/openssl.cnf',
  'ssl/cert.pem',
  'ca-certificates/extracted',
  'pki/ca-trust',
  'pki/tls/certs',
  'pki/tls/cert.pem',
  'pki/tls/openssl.cnf',
  'crypto-policies',
  // names and numbers
  'protocols',
  'services',
  'mime.types',
  // place, time, language, terminal
  'localtime',
  'timezone',
  'locale.conf',
  // which system this is
  'os-release',
  'lsb-release',
  'debian_version',
  'redhat-release',
  'fedora-release',
  'alpine-release',
  'arch-release',
  // language runtimes that keep their own settings here
  'python3',
  'python3.9',
  'python3.10',
  'python3.11',
  'python3.12',
  'python3.13',
  'python3.14',
  'perl',
  'java',
  'java-8-openjdk',
  'java-11-openjdk',
  'java-17-openjdk',
  'java-21-openjdk',
  'java-25-openjdk',
  'maven/m2.conf',
  'maven/logging',
  'R',
  'texmf',
  'fonts',
  'xml',
] as const

/** Every path that the system part asks about. */
export const SYSTEM_QUESTIONS: readonly string[] = [
  ...RUNTIME_ROOTS,
  ...ETC.map((name) => `/etc/${name}`),
  '/etc/resolv.conf',
]

const PASSWD =
  `root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n` +
  `sandbox:x:${SANDBOX_UID}:${SANDBOX_GID}:sandbox:/home/sandbox:/bin/sh\n` +
  `nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n`
const GROUP = `root:x:0:\nsandbox:x:${SANDBOX_GID}:\nnogroup:x:65534:\n`
const HOSTS = `127.0.0.1 localhost ${HOSTNAME}\n::1 localhost ${HOSTNAME}\n`
/** No services of the host (systemd-resolved, sssd, mdns) are asked for names: their sockets do not exist inside. */
const NSSWITCH =
  'passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\nprotocols: files\nservices: files\nethers: files\nrpc: files\n'

const ownFiles = (network: SystemInputs['network']): readonly (readonly [name: string, content: string])[] => [
  ['passwd', PASSWD],
  ['group', GROUP],
  ['hosts', HOSTS + ownHosts(network)],
  ['hostname', `${HOSTNAME}\n`],
  ['nsswitch.conf', NSSWITCH],
]

/** In a restricted network the helper judges names, and a program gets the address for its name. */
const ownHosts = ({ mode, hosts = {} }: SystemInputs['network']): string =>
  mode === 'restricted'
    ? ''
    : Object.entries(hosts)
        .map(([name, address]) => `${address} ${name}\n`)
        .join('')

/** Below every file of a repository and of the home, so that an identity of theirs counts. Values are quoted as git-config(1) says. */
function gitFile({ signing, ...user }: GitIdentity): readonly (readonly [name: string, content: string])[] {
  const { key, signs = [] } = signing ?? {}
  const sections = [
    settingsText('user', { ...user, ...(key && { signingkey: `key::${key}` }) }),
    ...(key === undefined ? [] : [settingsText('gpg', { format: 'ssh' })]),
    ...(key === undefined ? [] : signs.map((section) => settingsText(section, { gpgsign: 'true' }))),
  ].join('')
  return sections === '' ? [] : [['gitconfig', sections]]
}

function settingsText(section: string, values: Readonly<Record<string, string | undefined>>): string {
  const settings = Object.entries(values)
    .filter((entry): entry is [string, string] => entry[1] !== undefined && !/\p{Cc}/u.test(entry[1]))
    .map(([key, value]) => `\t${key} = "${value.replace(/[\\"]/g, '\\$&')}"\n`)
  return settings.length === 0 ? '' : `[${section}]\n${settings.join('')}`
}

export interface SystemInputs {
  readonly paths: PathFacts
  readonly network: Pick<NetworkPolicy, 'mode' | 'hosts'>
  readonly zones: readonly PlannedZone[]
  readonly scratch: readonly Scratch[]
  /** Symbolic links that lead to a mount by another name: target -> text. */
  readonly links: Readonly<Record<string, string>>
  /** The same, and they may lie in scratch file systems. */
  readonly aliases?: Readonly<Record<string, string>>
  /** Directories that must exist although nothing is mounted on them. */
  readonly directories: readonly string[]
  /** More files of our own, in directories that hold nothing else: the launcher makes the directories. */
  readonly files?: readonly SystemEntry[]
  /** Directories of the host's /sys, and names for them. */
  readonly hardware?: readonly SystemEntry[]
  readonly gitIdentity?: GitIdentity
}

export interface System {
  /** Sorted by target, so parents come first. */
  readonly entries: readonly SystemEntry[]
  readonly problems: readonly string[]
}

/** Decides the system part of the tree around the given zones and scratch file systems. */
export function systemTree(inputs: SystemInputs): System {
  const targetsOf = (mounts: readonly { readonly target: string }[]) => mounts.map(({ target }) => target)
  const mounted = targetsOf([...inputs.zones, ...inputs.scratch])
  // A zone with a file of /etc, or the whole directory, replaces our own.
  const base = baseEntries(inputs).filter(({ target }) => !inputs.zones.some((zone) => isWithin(target, zone.target)))
  const there = [...targetsOf(base), ...targetsOf(inputs.zones)]
  const entries = [
    ...base,
    ...(inputs.hardware ?? []),
    ...symlinks(inputs.links).filter(({ target }) => !isTaken(target, [...mounted, ...there])),
    ...symlinks(inputs.aliases ?? {}).filter(
      ({ target }) => !isTaken(target, there) && !mounted.some((other) => isWithin(other, target)),
    ),
  ]
  const directories = parentDirectories({ entries, mounted, wanted: inputs.directories, zones: inputs.zones })
  return {
    entries: [...directories, ...entries, ...(inputs.files ?? [])].sort((a, b) => byText(a.target, b.target)),
    problems: hiddenMountPoints(inputs.zones, entries),
  }
}

const symlinks = (links: Readonly<Record<string, string>>): readonly SystemEntry[] =>
  Object.entries(links).map(([target, link]) => ({ op: 'symlink', target, link }))

/** Something is already there, above it, or below it. */
function isTaken(target: string, others: readonly string[]): boolean {
  return others.some((other) => isWithin(target, other) || isBelow(other, target))
}

function baseEntries({ paths, network, gitIdentity = {} }: SystemInputs): readonly SystemEntry[] {
  return [
    ...RUNTIME_ROOTS.flatMap((root) => runtimeEntry(paths, root)),
    ...ETC.flatMap((name) => hostEntry(paths, `/etc/${name}`)),
    ...[...ownFiles(network), ...gitFile(gitIdentity)].map(
      ([name, content]): SystemEntry => ({ op: 'file', target: `/etc/${name}`, content, mode: 0o644 }),
    ),
    { op: 'symlink', target: '/etc/mtab', link: '/proc/self/mounts' },
    ...(network.mode === 'host' ? resolvConf(paths) : []),
    ...(network.mode === 'restricted' ? [RESTRICTED_RESOLV_CONF] : []),
  ]
}

/** The helper's name server; no search list, so that only names that were written are asked for. */
const RESTRICTED_RESOLV_CONF: SystemEntry = {
  op: 'file',
  target: '/etc/resolv.conf',
  content: `nameserver ${NET_ADDRESS}\noptions edns0 timeout:2 attempts:2\n`,
  mode: 0o644,
}

/** /bin and its like: a link where the host has merged them into /usr, else a directory of their own. */
function runtimeEntry(paths: PathFacts, root: string): readonly SystemEntry[] {
  const fact = pathFact(paths, root)
  if (fact.kind !== 'directory') return []
  if (fact.link !== undefined && isWithin(fact.real, '/usr')) return [{ op: 'symlink', target: root, link: fact.link }]
  return [{ op: 'bind', source: fact.real, target: root, kind: 'directory', from: 'system' }]
}

/** A link into what is visible anyway stays a link: it costs no mount. */
function hostEntry(paths: PathFacts, path: string): readonly SystemEntry[] {
  const fact = pathFact(paths, path)
  if (fact.kind !== 'file' && fact.kind !== 'directory') return []
  if (
    fact.link !== undefined &&
    isWithin(posix.resolve(posix.dirname(path), fact.link), '/usr') &&
    isWithin(fact.real, '/usr')
  ) {
    return [{ op: 'symlink', target: path, link: fact.link }]
  }
  return [{ op: 'bind', source: fact.real, target: path, kind: fact.kind, from: 'system' }]
}

/** systemd-resolved keeps it below /run, which is not shown: the file itself is. */
function resolvConf(paths: PathFacts): readonly SystemEntry[] {
  const fact = pathFact(paths, '/etc/resolv.conf')
  return fact.kind === 'file'
    ? [{ op: 'bind', source: fact.real, target: '/etc/resolv.conf', kind: 'file', from: 'system' }]
    : []
}

interface Parents {
  readonly entries: readonly SystemEntry[]
  readonly mounted: readonly string[]
  readonly wanted: readonly string[]
  readonly zones: readonly PlannedZone[]
}

/**
 * Directories above every mount, and none that comes with a mount: inside a zone or a bind the host's own directory is the mount point.
 * Inside a scratch file system they are listed, since that starts empty.
 */
function parentDirectories({ entries, mounted, wanted, zones }: Parents): readonly SystemEntry[] {
  const there = new Set([...mounted, ...entries.map(({ target }) => target)])
  const filled = [
    ...zones.map(({ target }) => target),
    ...entries.filter(({ op }) => op === 'bind').map(({ target }) => target),
  ]
  const above = [...there].flatMap(ancestorsOf)
  const missing = [...new Set([...above, ...wanted.flatMap((path) => [...ancestorsOf(path), path])])]
  return (
    missing
      // The launcher makes /dev itself, and /dev/shm in it.
      .filter((target) => target !== '/dev' && !there.has(target) && !filled.some((root) => isWithin(target, root)))
      .map((target) => ({ op: 'directory', target, mode: 0o755 }))
  )
}

/** A zone below a directory of the host's /etc has no mount point there, and we write nothing on the host to make one. */
function hiddenMountPoints(zones: readonly PlannedZone[], entries: readonly SystemEntry[]): readonly string[] {
  return zones.flatMap((zone) => {
    const above = entries.find(({ op, target }) => op !== 'directory' && isBelow(zone.target, target))
    return above === undefined
      ? []
      : [
          `${zone.from}: target ${zone.target} is inside ${above.target}, which is shown as the host has it; choose another target`,
        ]
  })
}
