/** Callers that hand down what they should not, and the command's identity on the host. */
import { chmod, chown, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { statusValue } from '../../src/doctor/contract-types.ts'
import { cliWords } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { guest } from '../support/driver.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { makeTestSite, PROBE, sh, words } from './chain.ts'
import { planOnce, supervised } from './launch.ts'

const SIGNALS = ['SigBlk', 'SigIgn', 'SigCgt']

describeWith('userns', 'a command', () => {
  test('gets no descriptor 9 or 1000, no ignored or blocked signal and no mask of 777 of its caller', async () => {
    const site = await makeTestSite()
    const look = `${PROBE} descriptors; cat /proc/self/status; umask`
    const launch = (await planOnce({ site, engine: 'unshare', command: sh(look) })).launch()
    const { stdout } = await supervised(launch, [guest('be-dirty')])
    const text = Buffer.from(stdout.head).toString()
    expect(text).toMatch(/^0\n1\n2\nName:/)
    expect(SIGNALS.map((name) => statusValue(text, name))).toEqual(SIGNALS.map(() => '0000000000000000'))
    expect(text).toMatch(/^0022$/m)
  })

  testWith('bwrap', 'control: without the chain descriptors and ignored signals arrive', async () => {
    const site = await makeTestSite()
    const look = sh(`${site.probe} descriptors; cat /proc/self/status; kill -9 $PPID`)
    const argv = ['/usr/bin/env', 'bwrap', '--dev-bind', '/', '/', '--die-with-parent', ...look]
    // With SIGCHLD ignored it would wait for its child without end.
    const { stdout } = await execa(guest('be-dirty'), argv, { reject: false })
    expect(stdout).toMatch(/^1000$/m)
    expect(statusValue(stdout, 'SigIgn')).not.toMatch(/^0+$/)
  })

  test('has the same ids for every caller, and they have a name', async () => {
    const command = sh('id -u; id -g; id -un; id -gn; cat /proc/self/setgroups')
    const planned = await planOnce({ site: await makeTestSite(), engine: 'unshare', command })
    expect((await planned.run()).stdout).toBe('1000\n1000\nsandbox\nsandbox\ndeny\n')
  })

  test('gets arguments that are not UTF-8 byte for byte', async () => {
    const argv = cliWords(words(await makeTestSite(), { engine: 'unshare' }, [PROBE, 'arguments']))
    // Only a shell can make such an argument here.
    const { stdout } = await execa('/bin/sh', ['-c', 'exec "$@" "$(printf "\\377\\376x")" ""', 'sh', ...argv])
    expect(stdout.split('\n')).toEqual(['fffe78', ''])
  })

  testWith(
    'root',
    'of root does not open the files of others in a zone of root, which keep their permissions',
    async () => {
      const site = await makeTestSite()
      const file = join(site.zone, 'private')
      await writeFile(file, 'secret\n')
      await chmod(file, 0o600)
      await chown(file, 12345, 12345)
      const command = sh('cat /zone/private; echo evil >/zone/private; chmod 777 /zone/private')
      expect((await (await planOnce({ site, engine: 'unshare', command })).run()).stdout).toBe('')
      expect(await readFile(file, 'utf8')).toBe('secret\n')
      expect((await stat(file)).mode & 0o777).toBe(0o600)
    },
  )

  testWith('root', 'of root has no supplementary groups; one of a user has them for zones', async () => {
    const shown = await temporaryDirectory({ mode: 0o755 })
    await writeFile(join(shown, 'theirs'), 'group 4242\n')
    await chown(join(shown, 'theirs'), 0, 4242)
    await chmod(join(shown, 'theirs'), 0o040)
    const run = async (who: string) => {
      const look = sh('grep ^Groups: /proc/self/status; cat /shown/theirs')
      const argv = [...who.split(' '), ...cliWords(['--ro', `${shown}:/shown`, '--', ...look])]
      const env = { PATH: process.env.PATH }
      return (await execa('setpriv', argv, { cwd: '/', env, extendEnv: false, reject: false })).stdout
    }
    const plain = '--reuid 54321 --regid 54321'
    expect(await run('--groups 4242')).toMatch(/^Groups:[ \t]*$/)
    // docs/internals/threat-model.md: the kernel lets no plain user give up a group. It is the control, too.
    expect(await run(`${plain} --groups 4242`)).toMatch(/^Groups:.+\ngroup 4242$/)
    expect(await run(`${plain} --clear-groups`)).toMatch(/^Groups:[ \t]*$/)
  })
})
