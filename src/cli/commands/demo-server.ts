/**
 * The server of `llm-do agent --demo-server`: in the process of its one agent, with a free port, and with everything that both of them
 * write in one temporary directory that is gone at the end.
 * Edge: a temporary directory.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { randomHex } from '../../os/random-id.ts'

export interface DemoServer {
  readonly url: string
  /** Of the agent's token: files are given to it only. */
  readonly secret: string
  /** Directory for the agent's state. */
  readonly state: string
}

/** @param secret of both; default: a new one */
export async function withDemoServer<T>(
  secret: string | undefined,
  use: (server: DemoServer) => Promise<T>,
): Promise<T> {
  const { startFleetServer } = await import('../../fleet/server/server.ts')
  const directory = mkdtempSync(join(tmpdir(), 'llm-do-demo.'))
  try {
    const shared = secret ?? randomHex(32)
    const server = await startFleetServer({ port: 0, directory: join(directory, 'server'), secret: shared })
    try {
      return await use({ url: server.url, secret: shared, state: join(directory, 'agent') })
    } finally {
      await server.close()
    }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
