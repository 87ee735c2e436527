/** The rest of what containers can get wrong, and podman; the sentences that both keep: tests/conformance. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { dockerInputs } from '../../../src/backends/docker/inputs.ts'
import { sweep } from '../../../src/backends/docker/prune.ts'
import { takeSession } from '../../../src/backends/docker/session-lock.ts'
import { runCli } from '../../support/cli.ts'
import { oncePerFile, startDocker, startPodman } from '../../support/docker.ts'
import { describeWith } from '../../support/needs.ts'
import { text } from '../plans.ts'
import {
  containers,
  type Engine,
  endsTheRun,
  engine,
  expectKept,
  observedZone,
  ownedDirectory,
  PROTECT,
  RENAMES,
  repository,
  runIn,
  session,
} from './runs.ts'

const docker = oncePerFile(startDocker)
const podman = oncePerFile(startPodman)

const run = (here: Engine, script: string, request: Partial<Parameters<typeof runIn>[1]> = {}) =>
  runIn(here, { command: ['sh', '-c', script], ...request })

describeWith('docker', 'a docker container', () => {
  const here = engine(docker)

  test('without our init has the daemon’s word only: a signal is exit code 128+N', async () => {
    const { init: _init, ...docker } = dockerInputs(here().fact, here().docker.env)
    const killed = await run(here(), 'kill -9 $$', { run: { docker } })
    expect(killed).toMatchObject({ reason: 'exit', exitCode: 137, signal: null, warnings: [] })
    const missing = await runIn(here(), { command: ['nosuch'], run: { docker } })
    expect(missing).toMatchObject({ reason: 'setup', failure: { errno: 'ENOENT' } })
    const unseen = { ...docker, init: '/nonexistent/init' }
    expect(await run(here(), 'exit 5', { run: { docker: unseen } })).toMatchObject({ reason: 'exit', exitCode: 5 })
  })

  test('shows a scratch directory inside a read-only zone', async () => {
    const source = await ownedDirectory()
    await mkdir(join(source, 'scratch'))
    const zones = [observedZone({ source, target: '/w' })]
    const scratch = [{ target: '/w/scratch', size: 1 << 20, inodes: 100, mode: 0o1777 }]
    const plan = { zones, scratch }
    const outcome = await run(here(), 'echo x > /w/scratch/f && cat /w/scratch/f', { plan })
    expect([outcome.reason, text(outcome.stdout)]).toEqual(['exit', 'x\n'])
  })

  test('of a session makes files by the mask of the caller of each run', async () => {
    const { inside } = await session(here())
    const before = process.umask()
    try {
      for (const mask of ['0077', '0002']) {
        process.umask(mask)
        expect(text((await inside('umask')).stdout)).toBe(`${mask}\n`)
      }
    } finally {
      process.umask(before)
    }
  })

  test('of a session that has ended is removed with its directory, but not from under a run', async () => {
    const { inside, left, inputs, runsDirectory } = await session(here())
    const { client } = here().docker
    const sweepLater = () => sweep(inputs, { now: Date.now() + 2 * 3_600_000, runsDirectory })
    await inside('true')
    expect([await sweepLater(), await left('containers')]).toEqual([0, [expect.any(String)]])
    const id = await containers(here())
    const name = (await client('inspect', '--format', '{{.Name}}', id)).slice(1)
    await client('kill', id)
    const held = await takeSession(runsDirectory, name)
    expect([await sweepLater(), await left('containers')]).toEqual([0, [expect.any(String)]])
    held?.release()
    expect([await sweepLater(), await left('containers'), await left('sessions')]).toEqual([1, [], []])
    expect(await containers(here())).toBe('')
  })
})

describeWith(['docker', 'podman'], 'a podman container', () => {
  const here = engine(podman)

  test('is reported with what podman can hold', () => {
    expect(here().fact).toMatchObject({ program: 'podman', server: { ok: true }, rootless: false })
  })

  test('starts in an empty directory where no zone shows the workspace', async () => {
    const outcome = await run(here(), 'pwd; ls -A; touch made', { plan: { workdir: '/workspace' } })
    expect(text(outcome.stdout)).toBe('/workspace\n')
    expect(text(outcome.stderr)).toContain('Read-only file system')
  })

  test('keeps protected paths and each directory on the way in place', async () => {
    const source = await repository()
    const zones = [observedZone({ source, target: '/w', mode: 'rw', protect: PROTECT })]
    expect(text((await run(here(), RENAMES, { plan: { zones } })).stdout)).toBe('')
    await expectKept(source)
  })

  endsTheRun(here, [['a directory on the way is made first', 'mkdir .config; mkdir .config/fish', '.config/fish']])

  test('lacks a network restricted by name, and says why', async () => {
    const words = ['--backend', 'docker', '--image', 'x', '--best-effort', '--allow-host', 'api.test', '--', 'true']
    const { status, stderr } = await runCli(words, { env: { ...here().docker.env, LLM_DO_DOCKER: 'podman' } })
    expect(status).toBe(125)
    expect(stderr.toString()).toContain('built for docker, not for podman')
  })
})
