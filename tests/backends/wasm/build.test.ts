import { describe, expect, test } from 'vitest'
import { buildWasm } from '../../../src/backends/wasm/build.ts'
import type { WasmInputs, WasmOrders } from '../../../src/backends/wasm/program.ts'
import { concludeWasm } from '../../../src/backends/wasm/run.ts'
import { planFor, plannedZone, runInputs } from '../plans.ts'

const wasm: WasmInputs = {
  node: '/usr/bin/node',
  permission: ['--experimental-permission'],
  python: '/opt/python.wasm',
}
const zones = [
  plannedZone({ source: '/home/user/project', target: '/workspace', mode: 'rw', protect: ['.git/hooks'] }),
  plannedZone({ source: '/data', target: '/workspace/data' }),
]

function build(command: readonly string[], changes = {}) {
  return buildWasm(
    planFor('wasm', { zones, ...changes }),
    runInputs({ wasm, command, commandEnv: { TOKEN: 's3cret' } }),
  )
}

function orders(command: readonly string[], changes = {}): WasmOrders {
  const one = build(command, changes).descriptors[0]
  return JSON.parse(new TextDecoder().decode(one?.carries === 'bytes' ? one.bytes : undefined)) as WasmOrders
}

describe('the wasm backend', () => {
  test.each([
    ['./tool.wasm', '/workspace', '/home/user/project/tool.wasm'],
    ['/workspace/bin/tool.wasm', '/workspace', '/home/user/project/bin/tool.wasm'],
    ['x.wasm', '/workspace/data', '/data/x.wasm'],
    ['python3', '/workspace', '/opt/python.wasm'],
  ])('finds %s in %s at %s', (program, workdir, module) => {
    expect(orders([program], { workdir }).module).toBe(module)
  })

  test('preopens the zones with their modes, and the working directory as "."', () => {
    const protect = ['/home/user/project/.git/hooks']
    expect(orders(['a.wasm'], { workdir: '/workspace/data/x' }).preopens).toEqual([
      { guest: '/workspace', host: '/home/user/project', readonly: false, protect },
      { guest: '/workspace/data', host: '/data', readonly: true, protect: [] },
      { guest: '.', host: '/data/x', readonly: true, protect: [] },
    ])
  })

  test('gives the variables to the module and none to node, and none on argv', () => {
    const { env, argv } = build(['a.wasm'])
    expect(env).toEqual({})
    expect(argv.join()).not.toContain('s3cret')
    expect(orders(['a.wasm']).env).toEqual({ TOKEN: 's3cret' })
  })

  test.each([
    [{ memory: { max: 33_554_432, by: 'wasm' } }, '--wasm-max-mem-pages=512'],
    [{ memory: { max: 1, by: 'wasm' } }, '--wasm-max-mem-pages=1'],
    [{ memory: { max: 2 ** 40, by: 'wasm' } }, '--wasm-max-mem-pages=65536'],
    [{}, '--wasm-max-mem-pages=65536'],
  ])('with the limits %o runs node with %s', (limits, word) => {
    expect(build(['a.wasm'], { limits }).argv).toContain(word)
  })

  test('inside a sandbox shows node, and python, where the system part does not, and puts no variable on argv', () => {
    const usr = { op: 'bind', source: '/usr', target: '/usr', kind: 'directory', from: 'system' } as const
    const inside = (node: string, command: readonly string[]) =>
      buildWasm(
        planFor('wasm', { zones, engine: 'bwrap', system: [usr] }),
        runInputs({ wasm: { ...wasm, node }, command, commandEnv: { NODE_OPTIONS: 's3cret' } }),
      )
    const launchFileOf = ({ descriptors: [one] }: ReturnType<typeof inside>): string =>
      new TextDecoder().decode(one?.carries === 'bytes' ? one.bytes : undefined)
    const wordsOf = ({ request }: ReturnType<typeof inside>) => request?.words ?? []
    const system = inside('/usr/bin/node', ['a.wasm'])
    expect(wordsOf(system)[0]).toBe('/usr/bin/node')
    expect(launchFileOf(system)).not.toContain('/.llm-do')
    const own = inside('/home/user/.nvm/node', ['python3'])
    expect(wordsOf(own)[0]).toBe('/.llm-do-node')
    expect(launchFileOf(own)).toContain('/home/user/.nvm/node\0/.llm-do-node')
    expect(launchFileOf(own)).toContain('/opt/python.wasm\0/.llm-do-python.wasm')
    expect(own.env).toMatchObject({ LLM_DO_WASM_ENV_NODE_OPTIONS: 's3cret' })
    expect(Object.keys(own.env)).not.toContain('NODE_OPTIONS')
    expect(wordsOf(own).join() + own.argv.join()).not.toContain('s3cret')
  })

  test.each<readonly [string, readonly string[], object, RegExp]>([
    ['a command that is not WASI', ['ls'], {}, /needs a WASI-compiled command/],
    ['a module that no zone shows', ['/opt/x.wasm'], {}, /no zone shows \/opt\/x\.wasm/],
    [
      'a zone that is a file',
      ['a.wasm'],
      { zones: [...zones, plannedZone({ source: '/f', target: '/f', kind: 'file' })] },
      /directories only/,
    ],
    ['a tmpfs zone', ['a.wasm'], { scratch: [{ target: '/scratch', size: 1, inodes: 1, mode: 0 }] }, /no tmpfs/],
  ])('refuses %s', (_what, command, changes, message) => {
    expect(() => build(command, changes)).toThrow(message)
  })

  test.each([
    ['{"end":"exit","code":137}', { reason: 'exit', exitCode: 137, signal: null }],
    ['{"end":"trap","message":"unreachable"}', { reason: 'signal', exitCode: null, signal: 'SIGABRT' }],
    ['{"end":"memory","message":"x"}', { reason: 'memory', exitCode: null, signal: 'SIGABRT' }],
    ['', { reason: 'signal', exitCode: null, signal: 'SIGKILL' }],
  ])('reads the report %j', (status, outcome) => {
    expect(
      concludeWasm(
        { cause: 'exit', exitCode: status === '' ? null : 0, signal: status === '' ? 'SIGKILL' : null, status },
        'a.wasm',
      ),
    ).toEqual(outcome)
  })
})
