/** A daemon of the tests' own in the world of tests/network, and runs in it by the command line. */
import { chmod, mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { afterAll, beforeAll } from 'vitest'
import type { Result } from '../../../src/report/result.ts'
import { ATTACKED_ZONE } from '../../network/ways.ts'
import { openWorld, type World } from '../../network/world.ts'
import { runForResult } from '../../support/cli.ts'
import { startDocker, type TestDocker } from '../../support/docker.ts'
import type { User } from '../../support/users.ts'

/** Links into the host's /usr, which is a zone at another place: one at /usr would be the system's. */
export const IMAGE = 'llm-do-test/host-usr:1'

async function importImage({ root, client }: TestDocker): Promise<void> {
  const tree = join(root, 'host-usr')
  await mkdir(join(tree, 'host-usr'), { recursive: true })
  for (const name of ['bin', 'sbin', 'lib', 'lib64']) await symlink(`host-usr/${name}`, join(tree, name))
  for (const name of ['etc', 'tmp', 'proc', 'sys', 'dev']) await mkdir(join(tree, name))
  await execa('tar', ['--create', '--file', `${tree}.tar`, '--directory', tree, '.'])
  await client('import', `${tree}.tar`, IMAGE)
}

export const WORDS = ['--best-effort', '--backend', 'docker', '--image', IMAGE, '--ro', '/usr:/host-usr']
export const python = (script: string, words: readonly string[] = []): readonly string[] => [
  'python3',
  '-c',
  script,
  ...words,
]
export const lines = (text: string): readonly string[] => text.trim().split('\n')

/** To be called in a describe block: the daemon and the world live as long as its tests. */
export function inTheWorld() {
  const state: { daemon?: TestDocker; world?: World } = {}
  beforeAll(async () => {
    const daemon = await startDocker()
    state.daemon = daemon
    await importImage(daemon)
    // As a user of the group of its socket would find it.
    await chmod(daemon.root, 0o711)
    await chmod(join(daemon.root, 'socket'), 0o666)
    state.world = await openWorld(ATTACKED_ZONE, { hostServes: true })
  })
  afterAll(async () => {
    await state.world?.close()
    await state.daemon?.stop()
  })
  const daemon = () => state.daemon as TestDocker
  const world = () => state.world as World
  const run = (words: readonly string[], command: readonly string[], as: User = 'root'): Promise<Result> => {
    const env = { ...daemon().env, HOME: daemon().root, LLM_DO_DOCKER: 'docker', PYTHONHOME: '/host-usr' }
    const argv = [...WORDS, '--env', 'PYTHONHOME', ...words, '--', ...command]
    return runForResult(argv, { through: world().through, as, env })
  }
  return { daemon, world, run }
}
