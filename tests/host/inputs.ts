/** A look at a machine on which everything works, of which a test changes what it is about. */
import type { HostInputs } from '../../src/host/probe.ts'

export const hostInputs = (some: Partial<HostInputs>): HostInputs => ({
  wantsEngines: true,
  observers: [],
  engine: 'all',
  believe: false,
  env: {},
  notBelow: [],
  version: '1.0.0',
  cache: undefined,
  nativePrograms: () => ({ probe: { ok: true }, stamp: 'helpers' }),
  probeEngine: async () => ({ ok: true }),
  landlockAbi: async () => 4,
  cgroup: async () => ({ rung: 'none', controllers: [], lacking: 'not looked at', fix: '' }),
  ...some,
})
