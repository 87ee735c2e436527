/** Zone sources and paths in them that are exchanged for links while a sandbox is being made. */
import { spawn } from 'node:child_process'
import { mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import { runCli } from '../support/cli.ts'
import { describeWith } from '../support/needs.ts'
import { collect, ENGINES, makeTestSite, sh, type TestSite, words } from './chain.ts'
import { planOnce } from './launch.ts'

const ATTEMPTS = 100

/** Exchanges two names as fast as one process can, until the test ends. */
function keepSwapping(site: TestSite, one: string, other: string): void {
  const swapper = spawn(site.probe, ['swap', one, other], { stdio: 'ignore' })
  onTestFinished(() => void swapper.kill('SIGKILL'))
}

async function makeSecret(base: string): Promise<string> {
  const secret = join(base, 'secret')
  await mkdir(secret)
  await writeFile(join(secret, 'notes'), 'secret\n')
  return secret
}

for (const engine of ENGINES) {
  describeWith([engine, 'userns'], `with ${engine}`, () => {
    test('a zone that is exchanged for a link after planning is refused or shown as it was, never followed', async () => {
      const site = await makeTestSite()
      const link = join(site.base, 'link')
      await symlink(await makeSecret(site.base), link)
      const planned = await planOnce({ site, engine, command: ['/bin/cat', '/zone/notes'] })
      keepSwapping(site, site.zone, link)
      const seen = await collect(ATTEMPTS, async () => {
        const { outcome, stdout } = await planned.run()
        return outcome.cause === 'setup' ? 'refused' : stdout.trim()
      })
      expect(new Set(seen)).toEqual(new Set(['host', 'refused']))
    })

    test('a zone that is exchanged for another directory after planning is refused, never shown', async () => {
      const site = await makeTestSite()
      const secret = await makeSecret(site.base)
      const planned = await planOnce({ site, engine, command: ['/bin/cat', '/zone/notes'] })
      keepSwapping(site, site.zone, secret)
      const seen = await collect(ATTEMPTS, async () => {
        const { outcome, stdout } = await planned.run()
        return outcome.cause === 'setup' ? 'refused' : stdout.trim()
      })
      expect(new Set(seen)).toEqual(new Set(['host', 'refused']))
    })

    test('a path in a writable zone that leads out by a link leads nowhere', async () => {
      const site = await makeTestSite()
      const secret = await makeSecret(site.base)
      await symlink(secret, join(site.zone, 'out'))
      const { stdout } = await runCli(
        words(site, { engine }, sh('cat /zone/out/notes; echo evil >/zone/out/notes; true')),
      )
      expect(stdout.toString()).toBe('')
      expect(await readFile(join(secret, 'notes'), 'utf8')).toBe('secret\n')
    })

    test('a protected name that is a link to another place is refused, not followed', async () => {
      const site = await makeTestSite()
      const secret = await makeSecret(site.base)
      await symlink(secret, join(site.zone, '.vscode'))
      const { status, stderr } = await runCli(words(site, { engine }, ['/bin/true']))
      expect(status).toBe(125)
      expect(stderr.toString()).toContain('.vscode')
      expect((await stat(secret)).isDirectory()).toBe(true)
    })
  })
}

describeWith(['bwrap', 'userns'], 'without the chain', () => {
  test('the link is followed', async () => {
    const site = await makeTestSite()
    const link = join(site.base, 'link')
    await symlink(await makeSecret(site.base), link)
    keepSwapping(site, site.zone, link)
    const seen = await collect(ATTEMPTS, async () => {
      const argv = ['--ro-bind', '/', '/', '--tmpfs', '/mnt', '--bind', site.zone, '/mnt', 'cat', '/mnt/notes']
      return (await execa('bwrap', argv, { reject: false })).stdout.trim()
    })
    expect(seen).toContain('secret')
  })
})
