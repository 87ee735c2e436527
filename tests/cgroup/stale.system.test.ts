/** A plan that had to do without a group is made again as soon as there is one: no cache has to be cleared. */
import { chownSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isSystemdRunning } from '../../src/cgroup/systemd.ts'
import { runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { PLAIN_ID } from '../support/users.ts'
import { newGroup } from './groups.ts'

/** Starts what follows in a group, before it becomes another user. */
const processIn = (group: string): readonly string[] => [
  'sh',
  '-c',
  'echo 0 > "$1/cgroup.procs" && shift && exec "$@"',
  'sh',
  group,
]

describeWith(['root', 'plain-user', 'userns'], 'a plan without a group', () => {
  test('is made again when the caller is given one', async () => {
    const group = newGroup()
    const [home, cwd] = [await temporaryDirectory({ owner: 'plain' }), await temporaryDirectory({ owner: 'plain' })]
    const run = async () => {
      const env = { HOME: home, XDG_RUNTIME_DIR: home }
      const { status } = await runCli(['--', 'true'], { as: 'plain', cwd, env, through: processIn(group) })
      expect(status).toBe(0)
      const cache = join(home, '.cache/llm-do/launch')
      return readdirSync(cache).map((name) => readFileSync(join(cache, name), 'utf8').includes(`\0cgroup\0${group}\0`))
    }
    expect([await run(), await run()]).toEqual([[false], [false]]) // The second one is from the cache.
    for (const file of ['', 'cgroup.procs', 'cgroup.subtree_control', 'cgroup.threads'])
      chownSync(join(group, file), PLAIN_ID, PLAIN_ID)
    expect(await run()).toContain(true)
  })
})

describeWith(['root', 'plain-user', 'userns'], 'what a place lacks', () => {
  // Under systemd it is not remembered: a manager may say something else the next time.
  test.skipIf(isSystemdRunning())('is believed as long as it looks the same, and no longer', async () => {
    const group = newGroup()
    const home = await temporaryDirectory({ owner: 'plain' })
    const found = async () => {
      const env = { HOME: home, XDG_RUNTIME_DIR: home }
      const call = { as: 'plain', env, program: 'llm-do', through: processIn(group) } as const
      return JSON.parse((await runCli(['doctor', '--facts'], call)).stdout.toString()).cgroup.lacking as string
    }
    const lacking = await found()
    expect(lacking).toContain(`${group} cannot be written`)
    // What is remembered is put in other words, to tell it from what is found.
    const cache = join(home, 'llm-do')
    for (const name of readdirSync(cache).filter((one) => one.startsWith('facts-'))) {
      const file = join(cache, name)
      writeFileSync(file, readFileSync(file, 'utf8').replaceAll('cannot be written', 'is remembered'))
    }
    expect(await found()).toBe(lacking.replaceAll('cannot be written', 'is remembered'))
    chownSync(group, PLAIN_ID, PLAIN_ID)
    expect(await found()).not.toContain('is remembered')
  })
})
