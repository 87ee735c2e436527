/** The same table as for the plan and the library, for the client. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { beforeAll, expect, test } from 'vitest'
import { writeLaunchFile } from '../../src/backends/namespace/launch-file.ts'
import { variableRules } from '../../src/launch-cache/cached-launch.ts'
import { PLAIN_POLICY, planIn } from '../plan/world.ts'
import { newDirectory } from '../support/directory.ts'
import { driver } from '../support/driver.ts'
import { describeWith } from '../support/needs.ts'
import { arrived, expectedOf, INHERITANCE } from './inheritance.ts'

const place = { directory: '' }

describeWith('gcc', 'the client', () => {
  beforeAll(async () => {
    const { path, remove } = await newDirectory()
    place.directory = path
    return remove
  })

  test.each(INHERITANCE)('takes over $taken by $inherit', async (row) => {
    const policy = { ...PLAIN_POLICY, env: { inherit: row.inherit, set: {} } }
    const plan = planIn({ policy, request: { environmentNames: Object.keys(row.caller) } })
    const file = join(place.directory, 'launch')
    await writeFile(file, writeLaunchFile(variableRules(plan.env, policy)))
    const { stdout } = await execa(driver('native/variables'), [file], { env: row.caller, extendEnv: false })
    const variables = stdout.split('\0').filter((variable) => variable !== '')
    const pairs = variables.map((variable) => {
      const at = variable.indexOf('=')
      return [variable.slice(0, at), variable.slice(at + 1)]
    })
    expect(arrived(Object.fromEntries(pairs), row)).toEqual(expectedOf(row))
  })
})
