/** What the doctor answers where something is wrong: on a machine that can run nothing, and where a wall is missing. */
import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { DoctorReport } from '../../src/doctor/checks.ts'
import { runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { kernelThat, type Refusal } from '../support/kernel.ts'
import { describeWith } from '../support/needs.ts'
import { PLAIN_ID } from '../support/users.ts'

async function doctor(words: readonly string[], refusals: readonly Refusal[] = []) {
  const through = refusals.length === 0 ? [] : await kernelThat(refusals)
  const { status, stdout } = await runCli(['doctor', ...words], { program: 'llm-do', through })
  return { status, out: stdout.toString() }
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

  test('names a row of the contract that is broken, and has status 1', async () => {
    const { status, out } = await doctor(['--self-test', '--engine=unshare'], [KEEPS_ROOT])
    expect(out).toMatch(/^FAIL +unshare +files\.host-absent /m)
    expect(out).toMatch(/\n\d+ passed, [1-9]\d* failed, /)
    expect(status).toBe(1)
  }, 240_000)
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
