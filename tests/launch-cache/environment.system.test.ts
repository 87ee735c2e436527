/** The same table as for the plan and the library, for the client. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { beforeAll, expect, test } from 'vitest'
import { writeLaunchFile } from '../../src/backends/namespace/launch-file.ts'
import { variableRules } from '../../src/launch-cache/cached-launch.ts'
import { PLAIN_POLICY, planIn } from '../plan/world.ts'
import { newDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { arrived, expectedOf, INHERITANCE } from './inheritance.ts'

const ROOT = join(import.meta.dirname, '../..')
const SOURCES = [
  join(ROOT, 'tests/native/variables.c'),
  ...['client/environment', 'lib/launch-file'].map((name) => join(ROOT, `native/${name}.c`)),
]
const FLAGS = [
  '-g',
  '-Wall',
  '-Wextra',
  '-Werror',
  '-D_GNU_SOURCE=',
  `-I${join(ROOT, 'native')}`,
  '-fsanitize=address,undefined',
]

const built = { directory: '' }

describeWith('gcc', 'the client', () => {
  beforeAll(async () => {
    const { path, remove } = await newDirectory()
    built.directory = path
    await execa('gcc', [...FLAGS, '-o', join(path, 'variables'), ...SOURCES])
    return remove
  })

  test.each(INHERITANCE)('takes over $taken by $inherit', async (row) => {
    const policy = { ...PLAIN_POLICY, env: { inherit: row.inherit, set: {} } }
    const plan = planIn({ policy, request: { environmentNames: Object.keys(row.caller) } })
    const file = join(built.directory, 'launch')
    await writeFile(file, writeLaunchFile(variableRules(plan.env, policy)))
    const { stdout } = await execa(join(built.directory, 'variables'), [file], { env: row.caller, extendEnv: false })
    const variables = stdout.split('\0').filter((variable) => variable !== '')
    const pairs = variables.map((variable) => {
      const at = variable.indexOf('=')
      return [variable.slice(0, at), variable.slice(at + 1)]
    })
    expect(arrived(Object.fromEntries(pairs), row)).toEqual(expectedOf(row))
  })
})
