/**
 * With mounts of its own a command of root could make an overlay of two zones of root, and the kernel would copy a set-id file or one
 * with capabilities from the read-only zone into the writable one. Such a run is refused.
 */
import { chmodSync, copyFileSync, mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { compileProfile, toHex } from '../../src/seccomp/compile.ts'
import type { Arch } from '../../src/seccomp/syscalls.ts'
import { runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { ENGINES, type Engine, type TestSite } from './chain.ts'
import { planOnce } from './launch.ts'

const SCRIPT = `
mount -t tmpfs none /tmp && mkdir /tmp/merged /zone/upper /zone/work || exit 1
mount -t overlay -o lowerdir=/probe,upperdir=/zone/upper,workdir=/zone/work,userxattr none /tmp/merged || exit 2
mv /tmp/merged/program /tmp/merged/moved
`

interface CopyUpSite extends TestSite {
  readonly upper: string
}

/** `probe` is the lower zone, with a set-id program of root. */
async function makeCopyUpSite(): Promise<CopyUpSite> {
  const base = await temporaryDirectory({ mode: 0o755 })
  const [zone, probe] = [join(base, 'zone'), join(base, 'lower')]
  for (const directory of [zone, probe]) mkdirSync(directory)
  copyFileSync('/usr/bin/id', join(probe, 'program'))
  chmodSync(join(probe, 'program'), 0o4755)
  return { base, zone, probe, upper: join(zone, 'upper') }
}

const COMMAND = ['/usr/bin/unshare', '--user', '--map-root-user', '--mount', '/bin/sh', '-c', SCRIPT]

describeWith(['root', 'userns'], 'a command of root that may make mounts', () => {
  test.each(ENGINES)('gets no writable zone of root, open names or not (%s)', async (engine) => {
    const { zone, probe } = await makeCopyUpSite()
    const zones = ['--engine', engine, '--zone', `z=${zone}:/zone:rw`, '--zone', `l=${probe}:/probe:ro`]
    const { status, stderr } = await runCli(['--seccomp', 'nested', '--protect-not', '*', ...zones, '--', 'true'])
    expect(status).toBe(125)
    expect(`${stderr}`).toContain(`${zone} is root's and cannot be writable under seccomp nested`)
  })

  test('gets one that is read-only, and a writable one of a user', async () => {
    const { zone, probe } = await makeCopyUpSite()
    await execa('chown', ['65534:65534', zone])
    const zones = ['--zone', `z=${zone}:/zone:rw`, '--zone', `l=${probe}:/probe:ro`]
    const run = await runCli(['--seccomp', 'nested', '--protect-not', '*', ...zones, '--', ...COMMAND])
    expect(`${run.stderr}`).not.toContain('cannot be writable')
    const { stdout } = await execa('find', [zone, '-perm', '/6000', '-user', 'root'])
    expect(stdout).toBe('')
  })

  test.each(ENGINES)('would copy a set-id program into it: the control (%s)', async (engine: Engine) => {
    const site = await makeCopyUpSite()
    const planned = await planOnce({
      site,
      engine,
      command: COMMAND,
      filter: toHex(compileProfile({ profile: 'nested', arch: process.arch as Arch }).filter),
      withoutLandlock: true,
    })
    const { outcome } = await planned.run()
    expect({ code: outcome.exitCode, said: Buffer.from(outcome.stderr.head).toString() }).toEqual({ code: 0, said: '' })
    const { mode, uid } = statSync(join(site.upper, 'moved'))
    expect({ setId: (mode & 0o4000) !== 0, uid }).toEqual({ setId: true, uid: 0 })
  })
})
