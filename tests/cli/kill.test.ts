import { beforeEach, expect, test, vi } from 'vitest'
import { kill } from '../../src/cli/commands/kill.ts'
import { listRuns, type RunLine, runRunsProgram } from '../../src/cli/run-records.ts'
import { writeStderr } from '../../src/cli/stdio.ts'
import { runIdOf } from '../../src/run/named-sandboxes.ts'

vi.mock(import('../../src/cli/run-records.ts'), async (original) => ({
  ...(await original()),
  listRuns: vi.fn(),
  runRunsProgram: vi.fn(),
}))
vi.mock('../../src/cli/stdio.ts')
vi.mock('../../src/run/named-sandboxes.ts')

const OWN = process.getuid?.() ?? 0
const run = (id: string, uid = OWN): RunLine => ({
  ...{ id, uid, pid: 1, started: 1, directory: '/w', profile: 'default', command: ['true'] },
})

beforeEach(() => {
  vi.resetAllMocks()
  vi.mocked(listRuns).mockReturnValue([run('abc1'), run('abd2'), run('foreign3', OWN + 7)])
  vi.mocked(runIdOf).mockImplementation((_, word) => (word === 'named' ? 'abc1' : word))
  vi.mocked(runRunsProgram).mockResolvedValue({ status: 0, stdout: '' })
})

const killed = () => vi.mocked(runRunsProgram).mock.calls.map(([, , id]) => id)

test.each([
  ['a whole ID', ['abc1'], ['abc1']],
  ['the name of a sandbox', ['named'], ['abc1']],
  ['the beginning of one ID, and another ID', ['abc', 'abd2'], ['abc1', 'abd2']],
])('%s ends the run', async (_, operands, ended) => {
  expect(await kill({ text: operands, env: {}, parent: 0 })).toBe(0)
  expect(killed()).toEqual(ended)
  expect(writeStderr).toHaveBeenCalledWith(ended.map((id) => `llm-do: run ${id} was ended`))
})

test('a signal is refused before anything is ended', async () => {
  const refused = kill({ text: ['-9', 'abc1'], env: {}, parent: 0 })
  await expect(refused).rejects.toMatchObject({ code: 'USAGE', hint: 'llm-do kill abc1' })
  expect(killed()).toEqual([])
})

test.each([
  ['the beginning of two IDs', 'ab', 'ab begins several runs: abc1, abd2.'],
  ['nothing', '', 'no run  is alive.'],
  ['an unknown ID', 'x', 'no run x is alive.'],
  ["another user's ID", 'foreign3', "run foreign3 is another user's, who alone can end or change it."],
])('%s ends none, and the others all the same', async (_, operand, message) => {
  expect(await kill({ text: [operand, 'abc1'], env: {}, parent: 0 })).toBe(125)
  expect(killed()).toEqual(['abc1'])
  const said = [`llm-do: error RUN_NOT_FOUND: ${message}`, 'llm-do: hint: llm-do ps', 'llm-do: run abc1 was ended']
  expect(writeStderr).toHaveBeenCalledWith(said)
})
