/** Valid and invalid options of the library's calls. */
import { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { checkOptions, type LibraryCall, OptionsError } from '../../src/library/check-options.ts'

function problemsOf(call: LibraryCall, options: unknown): readonly string[] {
  try {
    checkOptions(call, options)
    return []
  } catch (error) {
    if (!(error instanceof OptionsError)) throw error
    return error.problems
  }
}

const command = ['true']
const method = async () => undefined
const source = { take: method, progress: method, isCancelled: method, report: method }

describe('options', () => {
  test.each<[LibraryCall, unknown]>([
    ['exec', { command }],
    ['exec', { command, cwd: undefined, signal: undefined, policy: {}, layers: [], apply: 'never', mode: 'inherit' }],
    ['exec', { command, apply: async () => true, env: { A: 'b', C: undefined }, signal: new AbortController().signal }],
    ['spawn', { command, profile: 'mcp', cwd: '/' }],
    ['doctor', {}],
    ['openSandbox', { warm: 0 }],
    ['serveTasks', { source, slots: 2, signal: new AbortController().signal }],
    ['sandbox.exec', { command, onStdout: () => undefined }],
    ['sandbox.spawn', { command }],
    ['SandboxExecutor', { timeout: 1, cpuLimit: '2.0', log: () => undefined }],
    ['executeIn', { cpuLimit: 2, image: 'x' }],
  ])('of %s are taken: %o', (call, options) => {
    expect(problemsOf(call, options)).toEqual([])
  })

  test('of serveTasks have a source with its four methods', () => {
    expect(problemsOf('serveTasks', {})).toEqual([expect.stringContaining('source: expected an object with take')])
    expect(problemsOf('serveTasks', { source: { ...source, report: 1 }, slots: 0 })).toHaveLength(2)
  })

  test.each(['', 'text', new Uint8Array(1), ['a'], new Set(['a']), Readable.from(['a']), new Blob(['a']).stream()])(
    'take as stdin: %o',
    (stdin) => {
      expect(problemsOf('exec', { command, stdin })).toEqual([])
    },
  )

  test.each<[LibraryCall, object, string]>([
    ['exec', { onStdOut: 1 }, 'exec: unknown option "onStdOut". Did you mean "onStdout"?'],
    ['exec', { timeout: 5 }, 'exec: unknown option "timeout". Known: policy, layers, profile'],
    ['exec', { __proto__: null, constructor: 1 }, 'exec: unknown option "constructor".'],
    ['exec', { policy: [] }, 'exec: policy: expected an object, got a list.'],
    ['exec', { env: { A: 1 } }, 'exec: env: expected an object of texts'],
    ['exec', { mode: 'pipe' }, 'exec: mode: expected capture or inherit, got "pipe" (string).'],
    ['exec', { stdin: 5 }, 'exec: stdin: expected text, bytes (Uint8Array), a stream or an iterable of them, got 5'],
    ['exec', { signal: 'SIGTERM' }, 'exec: signal: expected an AbortSignal, got "SIGTERM" (string).'],
    ['exec', { invocation: {} }, 'exec: unknown option "invocation".'],
    ['exec', { apply: 'allways' }, 'exec: apply: expected on-success, never or a function'],
    ['exec', { apply: 'function' }, 'exec: apply: expected on-success, never or a function'],
    ['spawn', { stdin: 'x' }, 'spawn: unknown option "stdin".'],
    ['sandbox.exec', { policy: {} }, 'sandbox.exec: unknown option "policy".'],
  ])('of %s are refused: %o', (call, options, problem) => {
    const [first = ''] = problemsOf(call, { ...options, command })
    expect(first.slice(0, problem.length)).toBe(problem)
  })

  test.each([-1, 65, 1.5, '2'])('refuse %o sandboxes kept ready', (warm) => {
    expect(problemsOf('openSandbox', { warm })[0]).toMatch(/^openSandbox: warm: expected a whole number from 0 to 64/)
  })

  test.each([undefined, null, 5, ['true'], 'true'])('that are no object are refused: %o', (options) => {
    expect(problemsOf('exec', options)[0]).toMatch(/^exec: expected an object of options, got /)
  })

  test('are all named at once, in one TypeError with a code', () => {
    const options = { command: 'ls -l', onStdOut: 1, mode: 'x' }
    expect(() => checkOptions('exec', options)).toThrow(TypeError)
    expect(problemsOf('exec', options)).toHaveLength(3)
    expect(new OptionsError([]).code).toBe('OPTIONS_INVALID')
  })

  test('name the fix for a line of shell, and what is missing', () => {
    expect(problemsOf('exec', { command: 'ls -l' })[0]).toContain('for a line of shell: ["sh", "-c", "ls -l"]')
    expect(problemsOf('exec', {})).toEqual(['exec: command: expected a list of words, got nothing.'])
  })
})
