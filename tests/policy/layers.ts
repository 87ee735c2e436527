/** Layers and policies for the tests of this room. */
import { SandboxError } from '../../src/error.ts'
import { BUILT_IN } from '../../src/policy/built-in.ts'
import { inOrder, type PolicyLayer } from '../../src/policy/layer.ts'
import { type MergeOptions, mergePolicies } from '../../src/policy/merge.ts'
import type { Policy } from '../../src/policy/policy.ts'
import { checkLayer } from '../../src/policy/validate-layer.ts'
import type { Layer } from '../../src/policy/values.ts'

/** All of them read by the schema, over the built-in layer. */
export function mergeLayers(layers: readonly PolicyLayer[], options: MergeOptions): Policy {
  return mergePolicies([BUILT_IN, ...inOrder(layers)].map(checkLayer), options)
}

export const OPTIONS: MergeOptions = { profile: 'test', home: '/home/ann' }

/** A layer that says anything, also what no type allows. */
export function saying(values: unknown, layer: Layer = 'profile', source = 'a.yaml'): PolicyLayer {
  return { layer, source, directory: '/project', values: values as PolicyLayer['values'] }
}

export function merged(...values: readonly unknown[]): Policy {
  return mergeLayers(
    values.map((value) => saying(value)),
    OPTIONS,
  )
}

/** The problems of a merge that must fail. */
export function problemsOf(layers: readonly PolicyLayer[], options: MergeOptions = OPTIONS): readonly string[] {
  try {
    mergeLayers(layers, options)
  } catch (error) {
    if (error instanceof SandboxError && error.code === 'POLICY_INVALID') return error.problems
    throw error
  }
  throw new Error('expected POLICY_INVALID, got a policy')
}
