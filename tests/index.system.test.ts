/** The library as a program uses it: results, streams, cancelling, and runs that know nothing of each other. */
import { readdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { SandboxError } from '../src/error.ts'
import { exec, plan } from '../src/index.ts'
import type { SandboxInput } from '../src/policy/keys/index.ts'
import { directoryWith } from './real/directory.ts'
import { expectNothingLeft, newMark, takeSnapshot } from './support/leftovers.ts'
import { describeWith } from './support/needs.ts'

/** The error that something ends with. */
const errorOf = async (run: Promise<unknown>): Promise<SandboxError> => {
  const error: unknown = await run.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof SandboxError)) throw new Error(`expected a SandboxError, got ${String(error)}`)
  return error
}

describeWith(['bwrap', 'userns'], 'exec', () => {
  test.each(['/', '/usr', '/tmp'])('runs for a caller who stands in %s, and shows nothing of it', async (cwd) => {
    const result = await exec({ command: ['ls', '/workspace'], cwd })
    expect(result).toMatchObject({ ok: true, stdout: '' })
  })

  test('streams what the command writes while it runs, and keeps it', async () => {
    const chunks: string[] = []
    const errors: string[] = []
    const result = await exec({
      command: ['sh', '-c', 'for i in 1 2 3; do echo $i; echo e$i >&2; sleep 0.1; done'],
      onStdout: (chunk) => chunks.push(Buffer.from(chunk).toString()),
      onStderr: (chunk) => errors.push(Buffer.from(chunk).toString()),
      cwd: await directoryWith(),
    })
    expect({ out: chunks.join(''), err: errors.join('') }).toEqual({ out: '1\n2\n3\n', err: 'e1\ne2\ne3\n' })
    expect(chunks.length).toBeGreaterThan(1)
    expect(result).toMatchObject({ ok: true, stdout: '1\n2\n3\n', stderr: 'e1\ne2\ne3\n' })
  })

  test('is cancelled by an AbortSignal, and nothing is left of the run', async () => {
    const mark = newMark()
    const before = await takeSnapshot({ mark })
    const abort = new AbortController()
    const cwd = await directoryWith()
    const result = await exec({
      command: ['sh', '-c', 'echo begun; (setsid sleep 300 &) ; sleep 300', mark],
      cwd,
      signal: abort.signal,
      onStdout: () => abort.abort(),
    })
    expect(result).toMatchObject({ ok: false, reason: 'cancelled', exitCode: null, stdout: 'begun\n' })
    await expectNothingLeft({ before, mark })
  })

  test('with a signal that is aborted already runs nothing to its end', async () => {
    const cwd = await directoryWith()
    const signal = AbortSignal.abort()
    const command = ['sh', '-c', 'sleep 5; touch ran']
    const result = await exec({ command, cwd, signal, policy: { zones: [{ hostPath: '.', mode: 'rw' }] } })
    expect(result).toMatchObject({ ok: false, reason: 'cancelled' })
    expect(await readdir(cwd)).toEqual([])
  })

  test.each([
    ['a NUL in an argument', ['printf', 'a\0b'], 'COMMAND_INVALID', 'argument 1 of the command contains a NUL byte'],
    ['no command', [], 'COMMAND_INVALID', 'there is no command'],
  ])('throws for %s, with a code and a hint', async (_title, command, code, message) => {
    const error = await errorOf(exec({ command, cwd: await directoryWith() }))
    expect(error).toMatchObject({ code, message: expect.stringContaining(message) })
    expect(error.hint).not.toBe('')
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
