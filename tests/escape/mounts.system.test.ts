/** Mounts of the host: what is below a zone, and what comes later. Only root can mount, so only root's runs are tried. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, rename, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import { cliWords, runCli } from '../support/cli.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { makeTestSite, sh, type TestSite, words } from './chain.ts'
import { planOnce } from './launch.ts'

function mountTmpfs(target: string): void {
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'llm-do-test', target])
  onTestFinished(() => void execFileSync('umount', [target]))
}

/** Starts a command that says when it is there and waits for its input to end. */
async function startWaiting(argv: readonly string[]): Promise<{ readonly goOn: () => Promise<string> }> {
  const [file = '', ...rest] = argv
  const child = spawn(file, rest, { stdio: ['pipe', 'pipe', 'inherit'] })
  const text = { out: '' }
  child.stdout.on('data', (chunk: Buffer) => (text.out += chunk))
  await once(child.stdout, 'data')
  return {
    goOn: async () => {
      child.stdin.end()
      await once(child, 'close')
      return text.out
    },
  }
}

const WAIT_AND_LOOK = (at: string) => sh(`echo ready; read line; ls ${at}/later; cat ${at}/later/arrived 2>&1; true`)

/** A zone whose mount passes on what is mounted below it. */
async function sharedZone() {
  const site = await makeTestSite()
  const later = join(site.zone, 'later')
  await mkdir(later)
  execFileSync('mount', ['--bind', site.zone, site.zone])
  onTestFinished(() => void execFileSync('umount', [site.zone]))
  execFileSync('mount', ['--make-shared', site.zone])
  return { site, later }
}

describeWith(['root', 'userns'], 'a mount of the host', () => {
  test('that is made below a zone during the run does not arrive', async () => {
    const { site, later } = await sharedZone()
    const run = await startWaiting(cliWords(words(site, { engine: 'unshare' }, WAIT_AND_LOOK('/zone'))))
    mountTmpfs(later)
    await writeFile(join(later, 'arrived'), 'leaked\n')
    expect(await run.goOn()).not.toContain('leaked')
  })

  test('below the source of a read-only zone is read-only, too', async () => {
    const site = await makeTestSite()
    const deep = join(site.zone, 'deep')
    await mkdir(deep)
    mountTmpfs(deep)
    await writeFile(join(deep, 'notes'), 'host\n', { mode: 0o666 })
    const result = await runCli(
      words(site, { engine: 'unshare', mode: 'ro' }, sh('cat /zone/deep/notes; echo evil >/zone/deep/notes')),
    )
    expect(result.stdout.toString()).toBe('host\n')
    expect(await readFile(join(deep, 'notes'), 'utf8')).toBe('host\n')
  })

  testWith('bwrap', 'control: that is made later arrives without the chain', async () => {
    const { site, later } = await sharedZone()
    const run = await startWaiting(['bwrap', '--dev-bind', '/', '/', '--', ...WAIT_AND_LOOK(site.zone)])
    mountTmpfs(later)
    await writeFile(join(later, 'arrived'), 'leaked\n')
    expect(await run.goOn()).toContain('leaked')
  })
})

/* Zone sources and paths in them that are exchanged for links after the plan was made. */
async function makeSecret({ base }: TestSite): Promise<string> {
  const secret = join(base, 'secret')
  await mkdir(secret)
  await writeFile(join(secret, 'notes'), 'secret\n')
  return secret
}

/** An attacker's replacement of the zone. */
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
