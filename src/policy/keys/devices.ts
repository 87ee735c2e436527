/** Keys about devices of the host that a command may use. What is shown is decided by kind, in plan/devices.ts. */
import { misunderstood, type Reader, understood } from '../../text/units.ts'
import { readBoolean, readTarget } from '../readers.ts'
import { list, scalar } from './key.ts'
import { ranked } from './narrowing.ts'

/** The sandbox has its own of these. */
const OWN = /^\/dev\/(pts|shm|fd|mqueue)(\/|$)/

const readDevice: Reader<string> = (value) => {
  const reading = readTarget(value)
  return reading.ok && reading.value.startsWith('/dev/') && !OWN.test(reading.value)
    ? understood(reading.value)
    : misunderstood('a path below /dev, such as /dev/kvm', value)
}

export const devices = list<string>(readDevice, {
  description: 'Character devices of the host for the command: KVM, GPUs, accelerators.',
  unit: 'list of paths',
  examples: [['/dev/kvm']],
  flag: {
    name: 'device',
    isRare: true,
    argument: 'PATH',
    group: 'Inside',
    repeats: true,
    help: 'Use /dev/kvm, a GPU or an accelerator.',
    sets: (text) => ({ values: { devices: [text] } }),
  },
  narrowing: {
    isWider: (wanted, granted) => wanted.some((path) => !granted.includes(path)),
    takes: (_wanted, granted) => granted,
    shows: (wanted) => wanted.join(', '),
    grants: (granted) => (granted.length === 0 ? 'none' : granted.join(', ')),
    adds: true,
    fix: (wanted) => wanted.map((path) => `--device ${path}`).join(' '),
  },
})

export const gpu = scalar<boolean, boolean>(readBoolean, {
  description: 'The command may compute on the GPUs of this host.',
  unit: 'true or false',
  type: 'boolean',
  default: false,
  flag: { name: 'gpu', isRare: true, group: 'Inside' },
  narrowing: ranked([false, true]),
})
