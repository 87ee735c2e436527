/** The backends of the conformance table: how each is started here, what it lacks, and where it differs and why. */
import type { SandboxInput } from '../../src/policy/schema.ts'
import type { Result } from '../../src/report/result.ts'
import { BUSYBOX_IMAGE, startDocker, startPodman, type TestDocker } from '../support/docker.ts'
import type { Need } from '../support/needs.ts'
import type { Ability, Answer } from './sentences.ts'

export interface Difference {
  readonly why: string
  readonly holds: (answer: Answer) => void
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

type Expect = (answer: Answer) => void
const toHave =
  (fields: Partial<Result>): Expect =>
  ({ result }) => {
    for (const [name, value] of Object.entries(fields)) {
      if (JSON.stringify(result[name as keyof Result]) !== JSON.stringify(value)) {
        throw new Error(
          `${name}: expected ${JSON.stringify(value)}, got ${JSON.stringify(result[name as keyof Result])}`,
        )
      }
    }
  }

const SIGNAL_AS_CODE: Difference = {
  why: 'the engine reports a signal as exit code 128+N and nothing else',
  holds: toHave({ reason: 'exit', exitCode: 137, signal: null }),
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
    needs: ['unshare', 'userns'],
    values: { backend: 'namespace', engine: 'unshare' },
    lacks: {},
    differs: {},
  },
  {
    name: 'docker',
    needs: ['docker'],
    values: { backend: 'docker', image: BUSYBOX_IMAGE },
    lacks: {},
    differs: { 'exit-137': SIGNAL_AS_CODE },
    start: startDocker,
  },
  {
    name: 'podman',
    needs: ['docker', 'podman'],
    values: { backend: 'docker', image: BUSYBOX_IMAGE },
    lacks: {},
    differs: {
      'exit-137': SIGNAL_AS_CODE,
      memory: {
        why: 'podman on cgroup v1 does not record an OOM kill; the limit holds, its name is lost',
        holds: toHave({ reason: 'exit', exitCode: 137 }),
      },
    },
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
