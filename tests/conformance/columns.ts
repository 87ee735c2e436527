/** The backends of the conformance table: how each is started here, and what it lacks and why. */
import type { SandboxInput } from '../../src/policy/keys/index.ts'
import { BUSYBOX_IMAGE, oncePerFile, startDocker, startPodman, type TestDocker } from '../support/docker.ts'
import type { Need } from '../support/needs.ts'
import type { Ability } from './sentences.ts'

export interface Column {
  readonly name: string
  /** Needs of the machine. */
  readonly needs: readonly Need[]
  readonly values: SandboxInput
  readonly lacks: Readonly<Partial<Record<Ability, string>>>
  readonly start?: () => Promise<TestDocker>
  /** The command is the WASI guest. */
  readonly wasi?: true
}

const docker = oncePerFile(startDocker)
const podman = oncePerFile(startPodman)

const NO_SHELL = 'a WASI module starts no other program'
const NO_WALLS = 'a host process has no walls'

const column = (name: string, needs: readonly Need[], values: SandboxInput, more: Partial<Column> = {}): Column => ({
  ...{ name, needs, values, lacks: {} },
  ...more,
})
const CONTAINER = { backend: 'docker', image: BUSYBOX_IMAGE } as const

export const COLUMNS: readonly Column[] = [
  column('namespace (bwrap)', ['bwrap', 'userns'], { backend: 'namespace', engine: 'bwrap' }),
  column('namespace (unshare)', ['userns'], { backend: 'namespace', engine: 'unshare' }),
  column('docker', ['docker'], CONTAINER, { start: docker }),
  column('docker (session)', ['docker'], { ...CONTAINER, docker: { reuse: 'session' } }, { start: docker }),
  column('podman', ['docker', 'podman'], CONTAINER, { start: podman }),
  column(
    'wasm',
    ['wasi'],
    { backend: 'wasm' },
    { lacks: { shell: NO_SHELL, tmpfs: 'nothing would hold its size' }, wasi: true },
  ),
  column('process', [], { backend: 'process' }, { lacks: { walls: NO_WALLS, tmpfs: NO_WALLS } }),
]
