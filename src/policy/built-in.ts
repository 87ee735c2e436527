/** What holds when nobody says anything: the lowest layer of every policy. */
import type { PolicyLayer } from './layer.ts'

/** The defaults in the words a person would write; the schema's `standard` shows the same (a test compares them). */
export const BUILT_IN: PolicyLayer = {
  layer: 'built-in',
  source: 'built-in',
  directory: '/',
  values: {
    backend: 'auto',
    engine: 'auto',
    docker: { reuse: 'off' },
    zones: [],
    workspace: 'ro',
    samePath: false,
    network: 'none',
    resources: {
      memory: '512m',
      swap: '0',
      cpu: '2',
      pids: '256',
      timeout: '30s',
      cpuTime: 'none',
      readBps: 'none',
      writeBps: 'none',
      readIops: 'none',
      writeIops: 'none',
      tmp: '50m',
      run: '10m',
      shm: '64m',
      home: '50m',
      output: '1m',
    },
    env: { inherit: [], set: {} },
    credentials: [],
    sshAgent: false,
    seccomp: 'default',
    toolchains: 'auto',
    protect: [],
    protectNot: [],
    require: [],
    bestEffort: false,
    tty: false,
    pool: 'auto',
  },
}

/** Size of a tmpfs zone that names none. */
export const ZONE_SIZE = 50 * 1024 ** 2
