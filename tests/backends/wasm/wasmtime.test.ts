import { describe, expect, test } from 'vitest'
import { buildWasm } from '../../../src/backends/wasm/build.ts'
import { type WasmtimeInputs, wasmtimeWarnings, wasmtimeWords } from '../../../src/backends/wasm/wasmtime.ts'
import { planFor, plannedZone, runInputs } from '../plans.ts'

const INPUTS: WasmtimeInputs = {
  module: '/ro/tool.wasm',
  command: ['./tool.wasm', '--dir', '', 'a\nb'],
  preopens: [
    { guest: '/ro', host: '/ro', readonly: true, protect: [] },
    { guest: '/rw', host: '/rw', readonly: false, protect: ['/rw/.git/hooks'] },
    { guest: '.', host: '/rw/x y', readonly: false, protect: [] },
  ],
  names: ['HOME', 'TOKEN'],
  memory: 33_554_432,
}

describe('the command line of wasmtime', () => {
  test('names directories, variables, memory and the name of the program, and leaves the rest to the module', () => {
    const words = wasmtimeWords(INPUTS).map((word) => JSON.stringify(word))
    expect(`${words.join('\n')}\n`).toMatchGolden('tool.wasmtime')
  })

  test('has no limit of memory where the policy has none', () => {
    expect(wasmtimeWords({ ...INPUTS, memory: undefined }).join()).not.toContain('max-memory-size')
  })

  test('cannot hold a path with a double colon', () => {
    const preopens = [{ guest: '/a::b', host: '/a::b', readonly: true, protect: [] }]
    expect(() => wasmtimeWords({ ...INPUTS, preopens })).toThrow(/"::"/)
  })

  test.each(['LD_PRELOAD', 'RUST_LOG', 'WASMTIME_NEW_CLI'])(
    'is refused together with %s, which wasmtime reads',
    (name) => {
      expect(() => wasmtimeWords({ ...INPUTS, names: ['HOME', name] })).toThrow(`${name}: wasmtime reads`)
    },
  )
})

test('an exit code of wasmtime that can mean two things is told with a warning', () => {
  expect(wasmtimeWarnings(134).join()).toContain('which it was is not known')
  expect([0, 1, 3, 137, null].flatMap(wasmtimeWarnings)).toEqual([])
})

test('wasmtime runs in the sandbox that holds its zones, or not at all', () => {
  const run = runInputs({
    wasm: { node: '/usr/bin/node', permission: [], wasmtime: '/opt/wasmtime' },
    command: ['/ro/a.wasm'],
    commandEnv: { TOKEN: 's3cret' },
  })
  const plan = planFor('wasm', { runtime: 'wasmtime', zones: [plannedZone({ source: '/data', target: '/ro' })] })
  expect(() => buildWasm(plan, run)).toThrow(/without the sandbox/)
  const { env, argv, request } = buildWasm({ ...plan, engine: 'unshare' }, run)
  expect(env).toEqual({ TOKEN: 's3cret' })
  expect([...(request?.words ?? []), ...argv].join()).not.toContain('s3cret')
})
