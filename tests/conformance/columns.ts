/** The backends of the conformance table: how each is started here, what it lacks, and where it differs and why. */
import type { SandboxInput } from '../../src/policy/keys/index.ts'
import { BUSYBOX_IMAGE, startDocker, startPodman, type TestDocker } from '../support/docker.ts'
import type { Need } from '../support/needs.ts'
import type { Ability, SentenceRun } from './sentences.ts'

export interface Difference {
  readonly why: string
  readonly holds: (run: SentenceRun) => void
}

export interface Column {
  readonly name: string
  /** What the machine must have. */
  readonly needs: readonly Need[]
  readonly values: SandboxInput
  readonly lacks: Readonly<Partial<Record<Ability, string>>>
  readonly differs: Readonly<Record<string, Difference>>
  readonly start?: () => Promise<TestDocker>
  /** The command is the WASI guest. */
  readonly wasi?: true
}

const NO_SHELL = 'a WASI module starts no other program'
const NO_WALLS = 'a host process has no walls'

export const COLUMNS: readonly Column[] = [
  {
    name: 'namespace (bwrap)',
    needs: ['bwrap', 'userns'],
    values: { backend: 'namespace', engine: 'bwrap' },
    lacks: {},
    differs: {},
  },
  {
    name: 'namespace (unshare)',
    needs: ['userns'],
    values: { backend: 'namespace', engine: 'unshare' },
    lacks: {},
    differs: {},
  },
  {
    name: 'docker',
    needs: ['docker'],
    values: { backend: 'docker', image: BUSYBOX_IMAGE },
    lacks: {},
    differs: {},
    start: startDocker,
  },
  {
    name: 'docker (session)',
    needs: ['docker'],
    values: { backend: 'docker', image: BUSYBOX_IMAGE, docker: { reuse: 'session' } },
    lacks: {},
    differs: {},
    start: startDocker,
  },
  {
    name: 'podman',
    needs: ['docker', 'podman'],
    values: { backend: 'docker', image: BUSYBOX_IMAGE },
    lacks: {},
    differs: {},
    start: startPodman,
  },
  {
    name: 'wasm',
    needs: ['wasi'],
    values: { backend: 'wasm' },
    lacks: { shell: NO_SHELL, tmpfs: 'nothing would hold its size' },
    differs: {},
    wasi: true,
  },
  {
    name: 'process',
    needs: [],
    values: { backend: 'process' },
    lacks: { walls: NO_WALLS, tmpfs: NO_WALLS },
    differs: {},
  },
]
