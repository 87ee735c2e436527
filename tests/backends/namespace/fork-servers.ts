/** A library with a fork server at work, in this process or in another one. */

import { join } from 'node:path'
import { execa } from 'execa'
import { onTestFinished } from 'vitest'
import { openSandbox, type Sandbox } from '../../../src/pool/sandbox.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { childrenOf, readOr, TIED } from '../../support/processes.ts'
import { checkoutFor, currentUser } from '../../support/users.ts'

export const serverOf = (pid: number): number | undefined =>
  childrenOf(pid).find((child) => readOr(`/proc/${child}/cmdline`).includes('--fork-server'))

export const run = (sandbox: Sandbox, script: string) => sandbox.exec({ command: ['sh', '-c', script] })

/** Without ready sandboxes, and its server at work. */
export async function open(): Promise<{ readonly sandbox: Sandbox; readonly server: number }> {
  const sandbox = await openSandbox({ cwd: await temporaryDirectory({ mode: 0o755 }), warm: 0 })
  onTestFinished(() => sandbox.close())
  const server = await forked(sandbox)
  return { sandbox, server }
}

/** Runs until one is the server's. */
export async function forked(sandbox: Sandbox): Promise<number> {
  for (let left = 100; left > 0; left -= 1) {
    const seen = { server: undefined as number | undefined, launchers: 0 }
    const onStdout = () => {
      seen.server = serverOf(process.pid)
      seen.launchers = seen.server === undefined ? 0 : childrenOf(seen.server).length
    }
    await sandbox.exec({ command: ['sh', '-c', 'echo'], onStdout })
    if (seen.server !== undefined && seen.launchers > 0) return seen.server
  }
  throw new Error("no run was the server's")
}

export async function startOwner(script: string) {
  const library = join(checkoutFor(currentUser()), 'dist/index.js')
  const cwd = await temporaryDirectory({ mode: 0o755 })
  const text = `
    import { readFileSync } from 'node:fs'
    import { setPriority } from 'node:os'
    import { openSandbox } from ${JSON.stringify(library)}
    const sandbox = await openSandbox({ warm: 0 })
    const run = (script, onStdout) => sandbox.exec({ command: ['sh', '-c', script], onStdout })
    const childrenOf = (pid) => readFileSync(\`/proc/\${pid}/task/\${pid}/children\`, 'latin1').split(' ').filter(Boolean)
    const isBusyServer = (pid) => {
      try { return readFileSync(\`/proc/\${pid}/cmdline\`, 'latin1').includes('--fork-server') && childrenOf(pid).length > 0 }
      catch { return false } // it has ended
    }
    for (let isServed = false; !isServed; ) await run('echo', () => { isServed = childrenOf(process.pid).some(isBusyServer) })
    ${script}
    await sandbox.close()`
  const owner = execa(TIED[0], [...TIED.slice(1), process.execPath, '--input-type=module', '-e', text], {
    cwd,
    reject: false,
    all: true,
  })
  onTestFinished(async () => {
    owner.kill('SIGKILL')
    await owner
  })
  return { owner }
}
