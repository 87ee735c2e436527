/** The ways in which a program runs a command by the library. */
import { afterAll } from 'vitest'
import {
  type ExecOptions,
  type ExecResult,
  exec,
  openSandbox,
  type Sandbox,
  type SpawnedCommand,
  spawn,
} from '../../src/index.ts'
import { SharedSandbox } from '../../src/library/shared-sandbox.ts'
import { spawnBy } from '../../src/library/spawn.ts'
import { withHandle } from '../../src/run/layer-handle.ts'
import { until } from '../pool/pool.ts'
import { newDirectory, temporaryDirectory } from '../support/directory.ts'

type Asked = Pick<ExecOptions, 'command' | 'stdin' | 'onStdout' | 'onStderr' | 'signal'>

export interface Way {
  readonly exec: (asked: Asked) => Promise<ExecResult>
  readonly spawn: (asked: Pick<Asked, 'command' | 'signal'>) => SpawnedCommand
}

export type Policy = NonNullable<ExecOptions['policy']>
export type WithWay = (use: (way: Way) => Promise<void>, policy?: Policy) => Promise<void>

/** @param more in the policy or the environment of every run */
export const alone =
  (more: Pick<ExecOptions, 'policy' | 'env'> = {}): WithWay =>
  async (use, policy) => {
    const options = { cwd: await temporaryDirectory({ mode: 0o755 }), ...more, policy: { ...more.policy, ...policy } }
    await use({
      exec: (asked) => exec({ ...options, ...asked }),
      spawn: (asked) => spawn({ ...options, ...asked }),
    })
  }

/** One sandbox for all that say nothing of a policy; it is closed after the tests of its block. */
export function inSandbox(warm: number): WithWay {
  const shared: { opened?: Promise<Sandbox> } = {}
  afterAll(async () => (await shared.opened)?.close())
  const open = async (policy: Policy): Promise<Sandbox> =>
    openSandbox({ cwd: (await newDirectory({ mode: 0o755 })).path, warm, policy })
  return async (use, policy) => {
    if (policy === undefined) shared.opened ??= open({})
    const sandbox = await (policy === undefined ? (shared.opened as Promise<Sandbox>) : open(policy))
    const isReady = () => until(async () => (sandbox.ready() >= warm ? true : undefined), 'ready sandboxes')
    try {
      await isReady()
      await use(sandbox)
    } finally {
      // The next test may look for leftovers: none is being made then.
      await (policy === undefined ? isReady() : sandbox.close())
    }
  }
}

/** One sandbox for all commands of a test. */
export const inLiveSandbox = (): WithWay => async (use, policy) => {
  const options = { cwd: await temporaryDirectory({ mode: 0o755 }), ...(policy && { policy }) }
  const sandbox = await openSandbox({ ...options, warm: 0 })
  const shared = new SharedSandbox(options)
  const run = async (asked: Parameters<SharedSandbox['run']>[0]) =>
    withHandle(await shared.run(asked), { env: undefined, signal: asked.signal })
  const spawn: Way['spawn'] = (asked) => spawnBy((streams) => run({ ...asked, ...streams }), asked.signal)
  try {
    await sandbox.run({ command: ['true'] }) // planned before a test measures something
    await use({ exec: sandbox.run, spawn })
  } finally {
    await Promise.all([sandbox.close(), shared.close()])
  }
}
