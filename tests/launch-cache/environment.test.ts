import { describe, expect, test } from 'vitest'
import { writeLaunchFile } from '../../src/backends/namespace/launch-file.ts'
import { variableRules } from '../../src/launch-cache/cached-launch.ts'
import { environmentOf, readGuards } from '../../src/launch-cache/guards.ts'
import { commandEnvironment } from '../../src/plan/environment.ts'
import { PLAIN_POLICY, planIn } from '../plan/world.ts'
import { arrived, expectedOf, INHERITANCE } from './inheritance.ts'

describe.each(INHERITANCE)('of the caller’s variables $inherit takes over $taken', (row) => {
  const policy = { ...PLAIN_POLICY, env: { inherit: row.inherit, set: {} } }
  const plan = planIn({ policy, request: { environmentNames: Object.keys(row.caller) } })

  test('for a run that is planned', () => {
    expect(arrived(commandEnvironment(plan, policy, row.caller), row)).toEqual(expectedOf(row))
  })

  test('for a run of the library that is warm', () => {
    const guards = readGuards(writeLaunchFile(variableRules(plan.env, policy)))
    expect(arrived(environmentOf(guards, row.caller), row)).toEqual(expectedOf(row))
  })
})
