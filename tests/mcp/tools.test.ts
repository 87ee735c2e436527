import { describe, expect, test } from 'vitest'
import { listTools, readArguments, toolNames } from '../../src/mcp/tools.ts'

const named = (isCopyOnWrite: boolean, isOpenWorld = false) =>
  Object.fromEntries(listTools({ isCopyOnWrite, isOpenWorld }).map((tool) => [tool.name, tool]))

test('what decides about changes is offered where changes wait', () => {
  expect(toolNames(false)).toEqual(['run_command', 'read_output'])
  expect(toolNames(true)).toEqual(['run_command', 'read_output', 'diff', 'apply', 'discard'])
})

test('no tool takes an argument that it does not name', () => {
  const tools = listTools({ isCopyOnWrite: true, isOpenWorld: true })
  const isOpen = (schema: Record<string, unknown>) => schema['additionalProperties'] !== false
  expect(tools.filter(({ inputSchema }) => isOpen(inputSchema))).toEqual([])
  expect(tools.every(({ outputSchema }) => outputSchema.type === 'object')).toBe(true)
})

test('hints tell a client what to ask a person about', () => {
  expect(named(false)['run_command']?.annotations).toMatchObject({ readOnlyHint: false, destructiveHint: true })
  expect(named(true)['run_command']?.annotations).toMatchObject({ destructiveHint: false })
  expect(named(true)['apply']?.annotations).toMatchObject({ readOnlyHint: false, destructiveHint: true })
  expect(named(true)['diff']?.annotations).toMatchObject({ readOnlyHint: true, destructiveHint: false })
  expect(named(false, true)['run_command']?.annotations.openWorldHint).toBe(true)
  expect(named(false)['run_command']?.annotations.openWorldHint).toBe(false)
})

describe('arguments', () => {
  test('have defaults', () => {
    expect(readArguments('run_command', { command: 'id' })).toEqual({
      values: { command: 'id', session: 'none', stdin: '' },
    })
    expect(readArguments('discard', undefined)).toEqual({ values: {} })
  })

  test.each([
    [
      { command: 'id', timeout: 1 },
      'timeout: expected one of command, args, cwd, session, stdin, timeout_ms, got the unknown key',
    ],
    [{}, 'command: expected a string, got nothing'],
    [{ command: ['id'] }, 'command: expected a string, got'],
    [{ command: 'id', cwd: '/etc' }, 'cwd: expected a relative path without ".."'],
    [{ command: 'id', cwd: 'a/../..' }, 'cwd: expected a relative path without ".."'],
    [{ command: 'id', timeout_ms: 0 }, 'timeout_ms: expected'],
    [{ command: 'id', session: 'other' }, 'session: expected'],
    [{ command: 'id', env: { PATH: '/tmp' } }, 'env: expected one of'],
    [[], 'expected a mapping'],
  ])('%j are refused', (given, problem) => {
    expect(readArguments('run_command', given)).toEqual({ problem: expect.stringContaining(problem) })
  })

  test('ask for no more than a bounded piece of an output', () => {
    expect(readArguments('read_output', { id: 'x', length: 1e9 })).toHaveProperty('problem')
  })
})
