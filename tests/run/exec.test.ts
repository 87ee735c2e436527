/** The story of a run on the backend that needs nothing of the machine: a plain process. */
import { tmpdir } from 'node:os'
import { expect, test } from 'vitest'
import { exec } from '../../src/run/exec.ts'
import { type ExecOptions, prepare } from '../../src/run/plan-run.ts'
import { printLaunch } from '../../src/run/start.ts'
import { temporaryDirectory } from '../support/directory.ts'

const ALLOWED = { ...process.env, LLM_DO_ALLOW_UNSANDBOXED: '1' }
const onProcess = (command: readonly string[], more: Partial<ExecOptions> = {}): ExecOptions => ({
  command,
  cwd: tmpdir(),
  env: ALLOWED,
  policy: { backend: 'process', workspace: 'none' },
  ...more,
})

test('The command runs on the backend that the policy names, and its result says which walls there were', async () => {
  const result = await exec(onProcess(['/bin/echo', 'hello']))
  expect(result).toMatchObject({ ok: true, stdout: 'hello\n', backend: 'process', isolation: { fs: 'host' } })
})

test('Without the second half of its opt-in the run is refused before anything is started', async () => {
  const { LLM_DO_ALLOW_UNSANDBOXED: _, ...env } = ALLOWED
  await expect(exec(onProcess(['/bin/true'], { env }))).rejects.toThrow(/must be allowed twice/)
})

test('Without walls the files of the host are still not changed by a copy-on-write run: it is refused', async () => {
  const policy = { backend: 'process', workspace: 'cow' } as const
  const cwd = await temporaryDirectory()
  await expect(prepare(onProcess(['/bin/true'], { cwd, policy }))).rejects.toThrow(/copy-on-write/)
})

test('What a narrowing has made of the network is held to the same as what the operator wrote', async () => {
  const network = { mode: 'restricted', allow: ['0.0.0.0/0:*'], deny: [] } as const
  const narrow: ExecOptions['narrow'] = async (grant) => ({ ...grant, network })
  await expect(prepare(onProcess(['/bin/true'], { narrow }))).rejects.toThrow(/0\.0\.0\.0\/0/)
})

test('A worker that keeps hosts out of an open network is refused: nothing could keep them out', async () => {
  const network = { mode: 'host', allow: [], deny: ['a.example'] } as const
  const narrow: ExecOptions['narrow'] = async (grant) => ({ ...grant, network })
  await expect(prepare(onProcess(['/bin/true'], { narrow }))).rejects.toThrow(/expected restricted, .*a\.example/)
})

test('A plan may be judged once more before it is run', async () => {
  const accept = () => {
    throw new Error('judged')
  }
  await expect(exec(onProcess(['/bin/true'], { accept }))).rejects.toThrow('judged')
})

test.each([
  ['An argument that no process can receive', ['/bin/echo', 'a\0b'], 'argument 1 of the command contains a NUL byte'],
  ['No command', [], 'there is no command to run'],
])('%s is refused', async (_title, command, words) => {
  const message = expect.stringContaining(words)
  await expect(prepare(onProcess(command))).rejects.toMatchObject({ code: 'COMMAND_INVALID', message })
})

test('The process of a plan is printed as a line for a shell', async () => {
  const line = await printLaunch(await prepare(onProcess(['/bin/echo', 'two words'])))
  expect(line).toMatch(/^\/bin\/sh -c .* \/bin\/echo 'two words'\n$/)
})
