/** No word, variable or file of a caller is an option of node: every kind of position, by the newest node. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { temporaryDirectory } from '../support/directory.ts'
import { packageCopy } from '../support/package.ts'
import { describeNodeOptions, NODES, POSITIONS } from './node-options.ts'

const KINDS = [
  'of a command behind --',
  'of a planned command',
  'before the command',
  'of no verb',
  'of doctor',
  'of workers check',
]

describeNodeOptions({
  nodes: NODES.toSorted((one, other) => one.major - other.major).slice(-1),
  positions: POSITIONS.filter(([title]) => KINDS.includes(title)),
})

test('node given the program by hand does nothing', async () => {
  const built = await packageCopy()
  const cwd = await temporaryDirectory()
  const words = [join(built.root, 'dist/cli.cjs'), 'exec', '--', 'touch', 'made']
  const env = { PATH: process.env['PATH'], HOME: cwd }
  const run = await execa(process.execPath, words, { cwd, env, extendEnv: false, reject: false })
  await built.remove()
  expect(run).toMatchObject({ exitCode: 125, stderr: expect.stringContaining('start bin/llm-do') })
  expect(existsSync(join(cwd, 'made'))).toBe(false)
})
