/** The doctor's answers where something is wrong: on a machine that can run nothing, and where a wall is missing. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { DoctorReport } from '../../src/doctor/checks.ts'
import { type CliOptions, runCli, startCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { oncePerFile, startDocker } from '../support/docker.ts'
import { kernelThat, type Refusal } from '../support/kernel.ts'
import { describeWith } from '../support/needs.ts'
import { PLAIN_ID } from '../support/users.ts'

async function doctor(
  words: readonly string[],
  refusals: readonly Refusal[] = [],
  options: Pick<CliOptions, 'env' | 'cwd' | 'through'> = {},
) {
  const through = [...(options.through ?? []), ...(refusals.length === 0 ? [] : await kernelThat(refusals))]
  const { status, stdout, stderr } = await runCli(['doctor', ...words], { program: 'llm-do', ...options, through })
  return { status, out: stdout.toString(), err: stderr.toString() }
}

const NO_UNSHARE: Refusal = { refuses: ['unshare'], with: 'EPERM' }
/** Says that the host's root was let go, and keeps it. */
const KEEPS_ROOT: Refusal = { refuses: ['umount2'], with: 'success' }

describeWith(['userns', 'gcc'], 'the doctor', () => {
  test('has status 1 on a machine that can run nothing, and says so as JSON', async () => {
    const { status, out } = await doctor(['--json'], [NO_UNSHARE])
    expect({ status, ...JSON.parse(out) }).toMatchObject({ status: 1, ok: false, trial: { ok: false } })
    expect((await doctor([], [NO_UNSHARE])).status).toBe(1)
  })

  test('has status 0 here', async () => {
    const { status, out } = await doctor(['--json'])
    expect({ status, ...JSON.parse(out) }).toMatchObject({ status: 0, ok: true, trial: { ok: true } })
  })

  test('answers from a directory that was removed', async () => {
    const removed = ['sh', '-c', 'mkdir gone && cd gone && rmdir ../gone && exec "$@"', 'sh']
    expect(await doctor(['--json'], [], { through: removed })).toMatchObject({ status: 0, err: '' })
  })

  // Its status when it was not stopped: tests/cli/doctor.test.ts.
  test('names a row of the contract that is broken, and stops after it when it is asked to', async () => {
    const running = startCli(['doctor', '--self-test', '--engine=unshare'], {
      program: 'llm-do',
      through: await kernelThat([KEEPS_ROOT]),
      cwd: await temporaryDirectory(),
    })
    const read = { text: '' }
    running.stdout.on('data', (chunk: Buffer) => {
      read.text += chunk
      if (read.text.includes('FAIL')) running.kill('SIGTERM')
    })
    const { exitCode, stdout } = await running
    expect(stdout).toMatch(/^FAIL +unshare +files\.host-absent /m)
    expect(stdout).toMatch(/\n\d+ passed, [1-9]\d* failed, /)
    expect(exitCode).toBe(130)
  })
})

describeWith(['docker', 'gcc'], 'the doctor where only docker can run anything', () => {
  const docker = oncePerFile(startDocker)

  test('is content, and has run nothing: the image need not be there', async () => {
    // Nothing is remembered of this machine's engines. The number of a mount namespace can be one that another had before.
    const empty = 'mkdir -p /run/llm-do && mount -t tmpfs -o mode=0700 none /run/llm-do && exec "$@"'
    const through = ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', empty, 'sh']
    const { status, out } = await doctor(['--json'], [NO_UNSHARE], { env: (await docker()).env, through })
    const trial = { ok: true, backend: 'docker', filtered: null, setupMs: null }
    expect({ status, ...JSON.parse(out) }).toMatchObject({ status: 0, ok: true, trial })
  })

  test('asks with variables of the client that are relative to the caller’s directory', async () => {
    const cwd = await temporaryDirectory()
    mkdirSync(join(cwd, 'conf'))
    writeFileSync(join(cwd, 'conf/config.json'), '{"currentContext":"nowhere"}')
    const { out } = await doctor(['--json'], [], { cwd, env: { DOCKER_CONFIG: 'conf' } })
    const { parts } = JSON.parse(out) as DoctorReport
    expect(parts.find(({ name }) => name === 'docker')?.detail).toContain('nowhere')
  })
})

describeWith(['root', 'plain-user', 'userns'], 'the doctor of a plain user', () => {
  test('says where the key of the launch cache could lie, and is content when it does', async () => {
    const partFor = async (env: Readonly<Record<string, string>>) => {
      const { stdout } = await runCli(['doctor', '--json'], { program: 'llm-do', as: 'plain', env })
      const { parts } = JSON.parse(stdout.toString()) as DoctorReport
      return parts.find(({ name }) => name === 'launch cache')
    }
    expect(await partFor({})).toEqual({
      name: 'launch cache',
      state: 'limited',
      detail: expect.stringMatching(/^no runtime directory of uid \d+ .* starts node/),
      fix: expect.stringContaining(`install -d -m 700 -o ${PLAIN_ID} /run/user/${PLAIN_ID}`),
    })
    const own = await temporaryDirectory({ owner: 'plain' })
    expect(await partFor({ XDG_RUNTIME_DIR: own })).toMatchObject({ state: 'ok', fix: '' })
    // Another user could have read or written it.
    chmodSync(join(own, 'llm-do/key'), 0o644)
    expect(await partFor({ XDG_RUNTIME_DIR: own })).toMatchObject({
      state: 'limited',
      fix: expect.stringContaining('0600'),
    })
  })
})
