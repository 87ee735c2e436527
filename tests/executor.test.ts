import { describe, expect, test } from 'vitest'
import { layerOf } from '../src/executor.ts'
import { isolationLine } from '../src/report/isolation.ts'

describe('the executor face', () => {
  test('says its options as one layer of policy, and leaves the rest to the profile', () => {
    const options = { timeout: 5000, memoryLimit: '256m', cpuLimit: '1.5', env: { A: 'b' }, workspaceDir: '/w' }
    expect(layerOf(options, { runtime: 'node' })).toMatchObject({
      layer: 'flag',
      source: 'SandboxExecutor',
      directory: '/w',
      values: {
        runtime: 'node',
        resources: { timeout: '5000ms', memory: '256m', cpus: 1.5 },
        env: { set: { A: 'b' } },
      },
    })
    expect(layerOf({ workspaceDir: '/w' }, {}).values).toEqual({ resources: {} })
  })

  test.each([
    ['docker', 'Docker isolation: ENABLED (Secure)'],
    ['namespace', 'Isolation: ENABLED (namespace)'],
    ['wasm', 'Isolation: ENABLED (wasm)'],
    ['process', 'Isolation: DISABLED (Host process)'],
    [null, 'Isolation: REFUSED (nothing was run)'],
  ] as const)('logs a run on %s as "%s"', (backend, line) => {
    expect(isolationLine(backend)).toBe(line)
  })
})
