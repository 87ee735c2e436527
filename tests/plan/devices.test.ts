/** The devices of a plan, by the kinds of their numbers: no hardware, a tree of answers. */
import { describe, expect, test } from 'vitest'
import { PLAIN_TREE, planIn, refusal, type Tree } from './world.ts'

const PCI = '/sys/devices/pci0000:00/0000:00:02.0'
const HOST: Tree = {
  ...PLAIN_TREE,
  ...{ '/dev/kvm': 'device misc 10:232 660', '/dev/dri/renderD128': 'device drm 226:128' },
  ...{ '/dev/dri/card0': 'device drm 226:0', '/dev/dri/by-path/gpu': '-> ../renderD128' },
  ...{
    '/dev/nvidia0': 'device nvidia 195:0',
    '/dev/nvidia-uvm': 'device nvidia-uvm 508:0',
    '/dev/kfd': 'device kfd 511:0',
  },
  ...{ '/sys/dev/char/226:128': `-> ../..${PCI.slice(4)}/drm/renderD128`, [`${PCI}/drm/renderD128`]: 'directory' },
  ...{ '/sys/dev/char/511:0': '-> ../../devices/virtual/kfd/kfd', '/sys/devices/virtual/kfd/kfd': 'directory' },
}

const devicesOf = (...devices: readonly string[]) => planIn({ tree: HOST, policy: { devices } }).devices

describe('A device of the host', () => {
  test('is shown by its path with the identity that was seen', () => {
    expect(devicesOf('/dev/kvm')).toEqual([
      { source: '/dev/kvm', target: '/dev/kvm', dev: 1, ino: expect.any(Number), number: 2792, from: 'devices' },
    ])
    expect(devicesOf()).toBeUndefined()
  })

  test('that a link leads to is shown under the name of the link', () => {
    expect(devicesOf('/dev/dri/by-path/gpu')).toMatchObject([
      { source: '/dev/dri/renderD128', target: '/dev/dri/by-path/gpu' },
    ])
  })

  const REFUSED = `
    block 254:0 | is a disk
    mem 1:1 | the memory or the log
    mem 1:4 | the memory or the log
    mem 1:11 | the memory or the log
    /dev/tty 5:0 | a terminal
    /dev/vc/0 4:1 | a terminal
    ttyS 4:64 | a terminal
    ptm 5:2 | a terminal
    pts 136:0 | a terminal
    input 13:64 | input
    hidraw 240:0 | input
    misc 10:223 | input
    misc 10:200 | a network interface
    misc 10:229 | file systems
    misc 10:237 | new disks
    vfio 243:0 | any memory
    misc 10:183 | of a kind that is not shown
    fb 29:0 | of a kind that is not shown`
  test.each(
    REFUSED.trim()
      .split('\n')
      .map((line) => line.trim().split(' | ') as [string, string]),
  )('of another kind is refused, whatever its name: %s', (device, why) => {
    const tree = { ...HOST, '/dev/other': `device ${device}`, '/dev/link': '-> other' }
    for (const path of ['/dev/other', '/dev/link'])
      expect(refusal({ tree, policy: { devices: [path] } })).toMatchObject({
        code: 'POLICY_INVALID',
        message: expect.stringContaining(why),
      })
  })

  test('that is none is refused', () => {
    const tree = { ...HOST, '/dev/file': 'file' }
    expect(refusal({ tree, policy: { devices: ['/dev/none'] } }).message).toBe('devices: /dev/none is not there')
    expect(refusal({ tree, policy: { devices: ['/dev/file'] } }).message).toBe(
      'devices: /dev/file is not a device (file)',
    )
  })

  test("is named where root's command may not open it", () => {
    const asRoot = planIn({ tree: HOST, machine: { uid: 0, gid: 0 }, policy: { devices: ['/dev/kvm'] } })
    expect(asRoot.warnings).toContainEqual(expect.stringContaining('/dev/kvm (mode 660) is closed to the command'))
  })

  test('is refused by backends that take it by its path later', () => {
    for (const backend of ['docker', 'wasm'] as const)
      expect(refusal({ tree: HOST, policy: { backend, devices: ['/dev/kvm'] } }).code).toBe('NO_BACKEND')
  })
})

describe('The GPUs of a host', () => {
  test('are nodes to compute with, and what their libraries read', () => {
    const { devices, system } = planIn({ tree: HOST, policy: { gpu: true } })
    expect(devices?.map(({ target }) => target)).toEqual([
      ...['/dev/dri/renderD128', '/dev/nvidia0', '/dev/nvidia-uvm', '/dev/kfd'],
    ])
    const ofSys = system.filter(({ op, target }) => op !== 'directory' && op !== 'file' && target.startsWith('/sys/'))
    expect(ofSys.map((entry) => [entry.op, entry.target, 'link' in entry ? entry.link : ''])).toEqual([
      ['symlink', '/sys/bus/pci/devices/0000:00:02.0', PCI],
      ['symlink', '/sys/class/drm/renderD128', `${PCI}/drm/renderD128`],
      ['symlink', '/sys/class/kfd/kfd', '/sys/devices/virtual/kfd/kfd'],
      ['symlink', '/sys/dev/char/226:128', `${PCI}/drm/renderD128`],
      ['symlink', '/sys/dev/char/511:0', '/sys/devices/virtual/kfd/kfd'],
      ['bind', PCI, ''],
      ['bind', '/sys/devices/virtual/kfd/kfd', ''],
    ])
  })

  test('are refused where there is none', () => {
    expect(refusal({ policy: { gpu: true } }).message).toMatch(/^gpu: this host has no device/)
    // A disk in the place of a node is refused.
    const tree = { ...PLAIN_TREE, '/dev/dri/renderD128': 'device block 8:0' }
    expect(refusal({ tree, policy: { gpu: true } }).message).toMatch(/is a disk/)
  })
})
