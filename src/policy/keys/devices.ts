/** Keys about devices of the host that a command may use. What is shown is decided by kind, in plan/devices.ts. */
import { misunderstood, type Reader, understood } from '../../text/units.ts'
import { readTarget } from '../readers.ts'
import { list, toggle } from './key.ts'
import { opened } from './narrowing.ts'

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
  },
  narrowing: opened('--device'),
})

export const gpu = toggle({
  description: 'The command may compute on the GPUs of this host.',
  flag: { name: 'gpu', isRare: true, group: 'Inside' },
})
