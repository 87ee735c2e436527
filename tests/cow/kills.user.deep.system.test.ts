import { describe, expect, test } from 'vitest'
import { describeWith } from '../support/needs.ts'
import { callers } from '../support/users.ts'
import { killEverywhere } from './kills.ts'
import { holderOf, makePlace } from './place.ts'

const SCRIPT = 'echo more >> file; echo new > new; rm d/two; rm -r e; mkdir n; echo x > n/x; chmod 700 d; ln -s a l'

describe.each(callers())('as %s', (user) => {
  describeWith('strace', 'a layer', () => {
    test.each(
      (['apply', 'undo'] as const).flatMap((verb) => (['disk', 'memory'] as const).map((upper) => ({ verb, upper }))),
    )('survives an $verb that is killed at any step, on $upper', { timeout: 280_000 }, async ({ verb, upper }) => {
      const place = await makePlace(user, 'd/ e/ e/deep/ file d/one d/two e/three e/deep/four')
      const id = (await place.run(SCRIPT, '--cow-upper', upper)).cow?.id ?? ''
      expect(await killEverywhere({ place, id, layers: holderOf(place, id), verb })).toBeGreaterThan(12)
    })
  })
})
