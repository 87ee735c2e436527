/** Apply and undo, killed at each of their system calls, of layers on disk and in memory. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { describeWith } from '../support/needs.ts'
import { callers, uidOf } from '../support/users.ts'
import { killEverywhere } from './kills.ts'
import { makePlace } from './place.ts'

const SCRIPT = 'echo more >> file; echo new > new; rm d/two; rm -r e; mkdir n; echo x > n/x; chmod 700 d; ln -s a l'

describe.each(callers())('as %s', (user) => {
  describeWith('strace', 'a layer', () => {
    test.each(
      (['apply', 'undo'] as const).flatMap((verb) => (['disk', 'memory'] as const).map((upper) => ({ verb, upper }))),
    )('survives an $verb that is killed at any step, on $upper', { timeout: 280_000 }, async ({ verb, upper }) => {
      const place = await makePlace(user)
      for (const name of ['d', 'e', 'e/deep']) mkdirSync(join(place.project, name))
      for (const name of ['file', 'd/one', 'd/two', 'e/three', 'e/deep/four'])
        writeFileSync(join(place.project, name), `${name}\n`)
      if (user === 'plain') await execa('chown', ['-R', `${uidOf(user)}:${uidOf(user)}`, place.project])
      const id = (await place.run(SCRIPT, '--cow-upper', upper)).cow?.id ?? ''
      const layers = place.holders.find((directory) => existsSync(join(directory, id))) ?? ''
      expect(await killEverywhere({ place, id, layers, verb })).toBeGreaterThan(12)
    })
  })
})
