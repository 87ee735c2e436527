/** The watch of protected names uses an inotify instance, of which a user has few: runs must leave them to other programs. */
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { cliWords } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'

/** Runs a script in a user namespace whose users together have so many instances. */
async function withInstances(most: number, script: string) {
  const cwd = await temporaryDirectory()
  const limit = `echo ${most} >/proc/sys/user/max_inotify_instances && exec "$@"`
  const inner = ['unshare', '--user', '--map-user=1000', '--map-group=1000', 'sh', '-c', script]
  const { stdout, stderr } = await execa('unshare', ['--user', '--map-root-user', 'sh', '-c', limit, 'sh', ...inner], {
    ...{ cwd, extendEnv: false, env: { PATH: process.env.PATH, HOME: cwd, XDG_RUNTIME_DIR: cwd } },
  })
  const count = (text: string, part: string) => text.split(part).length - 1
  return { ran: count(stdout, 'ran'), unwatched: count(stderr, 'no inotify instance left') }
}

const inDirectory = (directory: string, command: string) =>
  `(mkdir -p ${directory}; cd ${directory}; ${cliWords(['--pool', 'off', '--rw', '.', '--', 'sh', '-c']).join(' ')} '${command}')`
const TEN = '0 1 2 3 4 5 6 7 8 9'

describeWith(['userns', 'git'], 'the watch of protected names', () => {
  test('takes no inotify instance for a command that is over soon', async () => {
    expect(await withInstances(0, inDirectory('long', 'sleep 0.5; echo ran'))).toEqual({ ran: 1, unwatched: 1 }) // the control
    // On a busy machine one may take long, but not each of them.
    const { ran, unwatched } = await withInstances(0, `for i in ${TEN}; do ${inDirectory('short$i', 'echo ran')}; done`)
    expect(ran).toBe(10)
    expect(unwatched).toBeLessThan(10)
  })

  test.each([
    ['fresh directories', ':', ['a$i$j', 'b$i$j', 'c$i$j']],
    ['repositories', 'git init -q', ['a$i', 'b$i', 'c$i']],
  ])('leaves its user inotify instances in a flood of runs in %s', async (_, make, lanes) => {
    const before = `for i in ${TEN}; do for of in a b c; do ${make} $of$i; done; done`
    const lane = (name: string) =>
      `for i in ${TEN}; do for j in 0 1 2 3; do ${inDirectory(name, 'echo ran')}; done; done &`
    const flood = await withInstances(14, `${before}; ${lanes.map(lane).join(' ')} wait`)
    expect(flood).toEqual({ ran: 120, unwatched: 0 })
  })
})
