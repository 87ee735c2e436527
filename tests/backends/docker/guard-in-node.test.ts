/** Protected names outside of Linux, where no guard program is. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { watchByHand, withGit } from '../../../src/backends/docker/guard-in-node.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { observedZone } from './runs.ts'

test.each(['.git', '.GIT', '.g\u200cit', '.Hg'])('a repository %j that is made inside is set aside', async (name) => {
  const source = await temporaryDirectory()
  const zone = { ...observedZone({ source, target: '/w', mode: 'rw' }), git: { open: [] } }
  const look = watchByHand([withGit(zone)], 'run')
  mkdirSync(join(source, 'sub', name), { recursive: true })
  writeFileSync(join(source, 'sub/.github'), '') // a name that begins alike
  const aside = `${name}.set-aside.run`
  expect(look()?.attempts).toEqual({ count: 1, first: [{ path: join(source, 'sub', name), aside, gone: false }] })
  expect(existsSync(join(source, 'sub', aside))).toBe(true)
})
