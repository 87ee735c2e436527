/** The ways in which a program runs a command by the library. */
import { type ExecOptions, type ExecResult, exec, openSandbox, type SpawnedCommand, spawn } from '../../src/index.ts'
import { until } from '../pool/pool.ts'
import { temporaryDirectory } from '../support/directory.ts'

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

export const inSandbox =
  (warm: number): WithWay =>
  async (use, policy = {}) => {
    const sandbox = await openSandbox({ cwd: await temporaryDirectory({ mode: 0o755 }), warm, policy })
    try {
      await until(async () => (sandbox.ready() >= warm ? true : undefined), 'ready sandboxes')
      await use(sandbox)
    } finally {
      await sandbox.close()
    }
  }
