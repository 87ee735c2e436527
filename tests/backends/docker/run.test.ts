import { expect, test } from 'vitest'
import { superviseDocker } from '../../../src/backends/docker/run.ts'
import { planFor, runInputs } from '../plans.ts'

/** No daemon: what is not refused before it is asked fails otherwise. */
const start = (stdin: 'terminal' | 'nothing' | 'data', tty: boolean) =>
  superviseDocker({
    plan: planFor('docker', { tty }),
    run: { ...runInputs({ stdin }), docker: { path: '/nonexistent', environment: {} } as never },
    stdio: { mode: 'inherit', stdin: 'inherit', outputCap: null },
    signal: undefined,
  })

test('a terminal in a container is refused to a pipe or a file, of which it would see nothing', async () => {
  await expect(start('data', true)).rejects.toThrow(/docker types no pipe and no file.*--tty/)
})

test.each([
  ['terminal', true],
  ['nothing', true],
  ['data', false],
] as const)('a stdin that brings %s is not refused where --tty is %s', async (stdin, tty) => {
  await expect(start(stdin, tty)).rejects.toThrow(/^(?!docker types)/)
})
