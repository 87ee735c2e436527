/**
 * `llm-do cache list` and `remove`: what `--cache` keeps for commands. `llm-do cache clear`: forgets the plans that were left for the
 * client.
 *
 * Edge: the cache directory.
 */
import { clearLaunches } from '../../launch-cache/store.ts'
import type { Environment } from '../call.ts'
import { writeStdout } from '../stdio.ts'
import { subcommand } from '../subcommand.ts'
import { usageError } from '../usage-error.ts'

async function clear(env: Environment): Promise<string> {
  const count = clearLaunches({ env, uid: process.getuid?.() ?? -1 })
  return `${count} ${count === 1 ? 'plan' : 'plans'} forgotten\n`
}

async function list(env: Environment): Promise<string> {
  const { listPrivate } = await import('../../host/private-directory.ts')
  return listPrivate(env, process.getuid?.() ?? -1, 'caches')
    .map((name) => `${name}\n`)
    .join('')
}

async function remove(names: readonly string[], env: Environment): Promise<string> {
  const { listPrivate, removePrivate } = await import('../../host/private-directory.ts')
  const uid = process.getuid?.() ?? -1
  const known = listPrivate(env, uid, 'caches')
  const unknown = names.find((name) => !known.some((one) => one === name || one.startsWith(`${name}/`)))
  if (unknown !== undefined) throw usageError(`cache: nothing is kept as ${unknown}`, 'llm-do cache list')
  for (const name of names) await removePrivate(env, uid, { kind: 'caches', name })
  return ''
}

export const cache = subcommand('cache', async ({ action, operands }, { env }) => {
  const print = { list, clear }[action ?? '']
  await writeStdout(await (print === undefined ? remove(operands, env) : print(env)))
  return 0
})
