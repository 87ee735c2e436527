/** Zone sources and paths in them that are exchanged for links after the plan was made. */
import { mkdir, readFile, rename, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { describeWith, testWith } from '../support/needs.ts'
import { makeTestSite, sh, type TestSite } from './chain.ts'
import { planOnce } from './launch.ts'

async function makeSecret({ base }: TestSite): Promise<string> {
  const secret = join(base, 'secret')
  await mkdir(secret)
  await writeFile(join(secret, 'notes'), 'secret\n')
  return secret
}

/** What an attacker puts in the place of the zone. */
const EXCHANGES = [
  ['a link', 'ELOOP', async (secret: string, zone: string) => symlink(secret, zone)],
  ['another directory', 'ESTALE', async (secret: string, zone: string) => rename(secret, zone)],
] as const

async function exchange(site: TestSite, put: (secret: string, zone: string) => Promise<void>): Promise<void> {
  const secret = await makeSecret(site)
  await rename(site.zone, join(site.base, 'moved'))
  await put(secret, site.zone)
}

describeWith('userns', 'a zone', () => {
  test.each(EXCHANGES)('that is exchanged for %s after planning is refused', async (_, errno, put) => {
    const site = await makeTestSite()
    const planned = await planOnce({ site, engine: 'unshare', mode: 'ro', command: ['/bin/cat', '/zone/notes'] })
    expect((await planned.run()).stdout).toBe('host\n')
    await exchange(site, put)
    const { outcome, stdout } = await planned.run()
    expect({ stdout, outcome }).toMatchObject({ stdout: '', outcome: { reason: 'setup', failure: { errno } } })
  })

  testWith('bwrap', 'control: without the chain the link is followed', async () => {
    const site = await makeTestSite()
    await exchange(site, EXCHANGES[0][2])
    const argv = ['--ro-bind', '/', '/', '--tmpfs', '/mnt', '--bind', site.zone, '/mnt', 'cat', '/mnt/notes']
    expect((await execa('bwrap', argv)).stdout).toBe('secret')
  })

  test('shows nothing through a link in it that leads out', async () => {
    const site = await makeTestSite()
    const secret = await makeSecret(site)
    await symlink(secret, join(site.zone, 'out'))
    const planned = await planOnce({
      site,
      engine: 'unshare',
      command: sh('cat /zone/out/notes; echo evil >/zone/out/notes; true'),
    })
    expect((await planned.run()).stdout).toBe('')
    expect(await readFile(join(secret, 'notes'), 'utf8')).toBe('secret\n')
  })
})
