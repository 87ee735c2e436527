/**
 * The devices of the host that a command may use. A kind that is not in the table is refused, whatever its path: the kind is the name under which
 * the kernel has registered the number, so a link, or a node made under another name, is judged by what it opens. Pure.
 */
import { posix } from 'node:path'
import type { DeviceFact, PathFact } from '../host/facts.ts'
import type { Policy } from '../policy/policy.ts'
import { type PathFacts, pathFact } from './mounts.ts'
import type { PlannedDevice, SystemEntry } from './plan.ts'

interface Kind {
  /** As in /proc/devices. */
  readonly driver: string
  /** All numbers of the driver where it is absent. */
  readonly minors?: readonly number[]
}

/** Numbers: Documentation/admin-guide/devices.txt. The first are null, zero, full, random and urandom; 232 is KVM. */
const SHOWN: readonly Kind[] = [
  { driver: 'mem', minors: [3, 5, 7, 8, 9] },
  { driver: 'misc', minors: [232] },
  ...['drm', 'nvidia', 'nvidia-frontend', 'nvidia-uvm', 'nvidia-caps', 'kfd', 'accel'].map((driver) => ({ driver })),
]

/** Why people must not expect these, for the ones that are asked for. */
const REASONS: readonly (readonly [driver: RegExp, minor: number | undefined, why: string])[] = [
  [/^mem$/, undefined, 'the memory or the log of this host'],
  [/^(tty|ttyS|\/dev\/|vcs|pts|ptm|console)/, undefined, 'a terminal of this host'],
  [/^(input|hidraw|usbmon)$/, undefined, 'input of this host'],
  [/^vfio/, undefined, 'hardware that writes to any memory of this host'],
  [/^misc$/, 200, 'a network interface, which a command without capabilities can open but not use'],
  [/^misc$/, 223, 'input of this host'],
  [/^misc$/, 229, 'file systems, which the command cannot mount'],
  [/^misc$/, 237, 'new disks'],
]

/** Only nodes to compute with: no `card`, whose holder can change what the screen shows. */
const GPU_NODES: readonly string[] = [
  ...Array.from({ length: 16 }, (_, at) => `/dev/dri/renderD${128 + at}`),
  ...Array.from({ length: 16 }, (_, at) => `/dev/nvidia${at}`),
  ...['nvidiactl', 'nvidia-uvm', 'nvidia-uvm-tools', 'kfd'].map((name) => `/dev/${name}`),
]

type Asked = Pick<Policy, 'devices' | 'gpu'>

export const deviceQuestions = ({ devices, gpu }: Asked): readonly string[] => [...devices, ...(gpu ? GPU_NODES : [])]

/** Where the kernel tells what is behind a node of a GPU. */
const sysName = ({ major, minor }: DeviceFact): string => `/sys/dev/char/${major}:${minor}`

const isOfGpu = (driver: string): boolean => driver === 'drm' || driver === 'kfd'

/** To be asked once the nodes are known. */
export function sysQuestions({ gpu }: Asked, seen: PathFacts): readonly string[] {
  if (!gpu) return []
  return GPU_NODES.flatMap((path) => {
    const { device } = pathFact(seen, path)
    return device !== undefined && isOfGpu(device.driver) ? [sysName(device)] : []
  })
}

export interface Devices {
  readonly devices: readonly PlannedDevice[]
  /** Read by libraries of GPUs. */
  readonly system: readonly SystemEntry[]
  readonly problems: readonly string[]
  readonly warnings: readonly string[]
}

export function plannedDevices(policy: Asked, paths: PathFacts, uid: number): Devices {
  const named = policy.devices.map((path) => ({ from: 'devices', fact: pathFact(paths, path) }))
  const gpus = policy.gpu
    ? GPU_NODES.filter((path) => !policy.devices.includes(path))
        .map((path) => ({ from: 'gpu', fact: pathFact(paths, path) }))
        .filter(({ fact }) => fact.kind !== 'missing')
    : []
  const wanted = [...named, ...gpus]
  const problems = wanted.flatMap(({ from, fact }) => problemOf(fact).map((problem) => `${from}: ${problem}`))
  const lacks = policy.gpu && gpus.length === 0 && !policy.devices.some((path) => GPU_NODES.includes(path))
  return {
    devices: problems.length > 0 ? [] : wanted.map(({ from, fact }) => planned(from, fact)),
    system: gpus.flatMap(({ fact }) => sysEntries(fact, paths)),
    problems: [
      ...problems,
      ...(lacks ? ['gpu: this host has no device of a GPU that is known (dri, nvidia, kfd)'] : []),
    ],
    warnings: uid === 0 ? wanted.flatMap(({ fact }) => closedToOthers(fact)) : [],
  }
}

const planned = (from: string, { path, real, dev, ino, device }: PathFact): PlannedDevice => ({
  ...{ source: real, target: path, dev, ino, number: device?.number ?? 0, from },
})

function problemOf({ path, kind, device }: PathFact): readonly string[] {
  if (kind === 'missing') return [`${path} is not there`]
  if (device === undefined) return [`${path} is not a device (${kind})`]
  const { type, driver, major, minor } = device
  if (type === 'block') return [`${path} is a disk (${major}:${minor}), and no disk is shown`]
  if (SHOWN.some((kind) => kind.driver === driver && (kind.minors?.includes(minor) ?? true))) return []
  const why = REASONS.find(([name, number]) => name.test(driver) && (number ?? minor) === minor)?.[2]
  const what = `${path} (${driver === '' ? 'unknown' : driver}, ${major}:${minor})`
  return [
    `${what} ${why === undefined ? 'is of a kind that is not shown' : `opens ${why}`}; shown are KVM, GPUs and accelerators`,
  ]
}

/** Root's command is another user without groups. */
const closedToOthers = ({ path, mode }: PathFact): readonly string[] =>
  (mode & 0o006) === 0o006
    ? []
    : [
        `${path} (mode ${mode.toString(8)}) is closed to the command, which is not root: start the run as a user who may use it`,
      ]

/**
 * The directory of the hardware, and the names by which libraries find it: libdrm and Mesa go by the number of the node, ROCm by class/kfd. Links in
 * it that lead elsewhere lead nowhere, as all of /sys that is not shown.
 */
function sysEntries({ device }: PathFact, paths: PathFacts): readonly SystemEntry[] {
  if (device === undefined || !isOfGpu(device.driver)) return []
  const name = sysName(device)
  const { kind, real } = pathFact(paths, name)
  if (kind !== 'directory' || !real.startsWith('/sys/devices/')) return []
  const link = (target: string, to: string): SystemEntry => ({ op: 'symlink', target, link: to })
  if (device.driver === 'kfd') return [bind(real), link(name, real), link('/sys/class/kfd/kfd', real)]
  const hardware = posix.dirname(posix.dirname(real))
  const address = posix.basename(hardware)
  return [
    bind(hardware),
    link(name, real),
    link(`/sys/class/drm/${posix.basename(real)}`, real),
    ...(/^[0-9a-f]{4}:[0-9a-f]{2}:/.test(address) ? [link(`/sys/bus/pci/devices/${address}`, hardware)] : []),
  ]
}

const bind = (path: string): SystemEntry => ({ op: 'bind', source: path, target: path, kind: 'directory', from: 'gpu' })
