import { beforeEach, expect, test, vi } from 'vitest'
import { kill } from '../../src/cli/commands/kill.ts'
import { isOwn, listRuns, type RunLine, runRunsProgram } from '../../src/cli/run-records.ts'
import { writeStderr } from '../../src/cli/stdio.ts'
import { runIdOf } from '../../src/run/named-sandboxes.ts'

vi.mock('../../src/cli/run-records.ts')
vi.mock('../../src/cli/stdio.ts')
vi.mock('../../src/run/named-sandboxes.ts')

const run = (id: string, uid = 0): RunLine => ({
  ...{ id, uid, pid: 1, started: 1, directory: '/w', profile: 'default', command: ['true'] },
})

beforeEach(() => {
  vi.resetAllMocks()
  vi.mocked(listRuns).mockReturnValue([run('abc1'), run('abd2'), run('foreign3', 7)])
  vi.mocked(runIdOf).mockImplementation((_, word) => (word === 'named' ? 'abc1' : word))
  vi.mocked(isOwn).mockImplementation(({ uid }) => uid === 0)
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
})

test.each([
  ['the beginning of two IDs', 'ab', 'ab is the beginning of several runs, and none was ended: abc1, abd2'],
  ['nothing', '', 'no run  is alive (see: llm-do ps)'],
  ['an unknown ID', 'x', 'no run x is alive (see: llm-do ps)'],
  ["another user's ID", 'foreign3', "run foreign3 is another user's, who alone can end it (see: llm-do ps)"],
])('%s ends none', async (_, operand, message) => {
  expect(await kill({ text: [operand], env: {}, parent: 0 })).toBe(125)
  expect(killed()).toEqual([])
  expect(writeStderr).toHaveBeenCalledWith([`llm-do: ${message}`])
})
