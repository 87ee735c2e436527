/** Callers that hand down what they should not: descriptors, ignored and blocked signals, a strange mask. And who the command is on the host. */
import { readdirSync, readFileSync } from 'node:fs'
import { chmod, chown, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { superviseNamespace } from '../../src/backends/namespace/run.ts'
import { statusValue } from '../../src/doctor/contract-types.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { ENGINES, makeTestSite, PROBE, sh } from './chain.ts'
import { planOnce } from './launch.ts'

const LOOK = `${PROBE} descriptors; cat /proc/self/status; umask`
const SIGNALS = ['SigBlk', 'SigIgn', 'SigCgt']

/** Processes of the host whose command line has the word. */
const statusesOf = (word: string): readonly string[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && readOr(`/proc/${name}/cmdline`).includes(word))
    .map((pid) => readOr(`/proc/${pid}/status`))

function readOr(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return '' // It has ended.
  }
}

for (const engine of ENGINES) {
  describeWith([engine, 'userns'], `with ${engine}`, () => {
    test('descriptors 9 and 1000, ignored and blocked signals and a mask of 777 do not reach the command', async () => {
      const site = await makeTestSite()
      const launch = (await planOnce({ site, engine, command: sh(LOOK) })).launch()
      const dirty = { ...launch, file: site.probe, argv: ['dirty', launch.file, ...launch.argv] }
      const { stdout } = await superviseNamespace({
        launch: dirty,
        stdio: { mode: 'capture', stdin: 'ignore', outputCap: null },
      })
      const text = Buffer.from(stdout.head).toString()
      expect(text).toMatch(/^0\n1\n2\nName:/)
      expect(SIGNALS.map((name) => statusValue(text, name))).toEqual(SIGNALS.map(() => '0000000000000000'))
      expect(text).toMatch(/^0022$/m)
    })

    test('the command has the same ids for every caller, and they have a name', async () => {
      const site = await makeTestSite()
      const planned = await planOnce({
        site,
        engine,
        command: sh('id -u; id -g; id -un; id -gn; cat /proc/self/setgroups'),
      })
      expect((await planned.run()).stdout).toBe('1000\n1000\nsandbox\nsandbox\ndeny\n')
    })

    testWith('root', "on the host the command is never root, and its files belong to the zone's owner", async () => {
      const site = await makeTestSite()
      const word = `999${process.pid}`
      const planned = await planOnce({
        site,
        engine,
        command: sh(`echo x >/zone/made; sleep 0.${word}; sleep 0.${word}`),
      })
      const running = planned.run()
      const seen: string[] = []
      for (let left = 100; left > 0 && seen.length === 0; left--) {
        seen.push(...statusesOf(`0.${word}`))
        await sleep(10)
      }
      await running
      expect(seen.length).toBeGreaterThan(0)
      for (const status of seen) expect(statusValue(status, 'Uid').split('\t')).not.toContain('0')
      expect((await stat(join(site.zone, 'made'))).uid).toBe(0)
    })

    testWith('root', 'a file of another user in a zone of root stays closed, with its permissions', async () => {
      const site = await makeTestSite()
      const file = join(site.zone, 'private')
      await writeFile(file, 'secret\n')
      await chmod(file, 0o600)
      await chown(file, 12345, 12345)
      const planned = await planOnce({
        site,
        engine,
        command: sh('cat /zone/private; echo evil >/zone/private; chmod 777 /zone/private'),
      })
      expect((await planned.run()).stdout).toBe('')
      expect(await readFile(file, 'utf8')).toBe('secret\n')
      expect((await stat(file)).mode & 0o777).toBe(0o600)
    })
  })
}

describeWith(['bwrap', 'userns'], 'without the chain', () => {
  test('descriptors and ignored signals arrive', async () => {
    const site = await makeTestSite()
    const bwrap = (await execa('which', ['bwrap'])).stdout
    const argv = [
      'dirty',
      bwrap,
      '--dev-bind',
      '/',
      '/',
      '--die-with-parent',
      ...sh(`${site.probe} descriptors; cat /proc/self/status`),
    ]
    // It may hang for ever with SIGCHLD ignored; what it printed until then is enough.
    const { stdout } = await execa(site.probe, argv, {
      reject: false,
      timeout: 3_000,
      forceKillAfterDelay: 100,
      killSignal: 'SIGKILL',
    })
    expect(stdout).toMatch(/^1000$/m)
    expect(statusValue(stdout, 'SigIgn')).not.toMatch(/^0+$/)
  })

  testWith('root', 'the command is root on the host', async () => {
    const { stdout } = await execa('bwrap', [
      '--dev-bind',
      '/',
      '/',
      '--uid',
      '1000',
      '--unshare-user',
      'cat',
      '/proc/self/uid_map',
    ])
    expect(stdout.trim().split(/\s+/)[1]).toBe('0')
  })
})
