/** The library: where its caller may stand, and its plans. The rest is in tests/library. */
import { readdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { exec, plan } from '../src/index.ts'
import type { SandboxInput } from '../src/policy/keys/index.ts'
import { directoryWith } from './real/directory.ts'
import { describeWith } from './support/needs.ts'

describeWith(['bwrap', 'userns'], 'exec', () => {
  test.each(['/', '/usr', '/tmp'])('runs for a caller who stands in %s, and shows nothing of it', async (cwd) => {
    const result = await exec({ command: ['ls', '/workspace'], cwd })
    expect(result).toMatchObject({ ok: true, stdout: '' })
  })
})

describeWith(['bwrap', 'userns'], 'plan', () => {
  test('decides everything, does nothing, and holds no secret', async () => {
    const cwd = await realpath(await directoryWith())
    const policy = {
      zones: [{ name: 'made', hostPath: './made', mode: 'rw' as const, create: true }],
      env: { set: { TOKEN: 'swordfish' } },
    } satisfies SandboxInput
    const decided = await plan({ command: ['touch', '/made/ran'], cwd, policy })
    expect(decided.zones.find(({ name }) => name === 'made')).toMatchObject({
      source: join(cwd, 'made'),
      create: true,
    })
    expect(JSON.stringify(decided)).not.toContain('swordfish')
    expect(await readdir(cwd)).toEqual([])
  })
})
