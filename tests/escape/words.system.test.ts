/** What goes in and comes out by the command line itself: bytes that are no text, and a hundred runs side by side. */
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { cliWords } from '../support/cli.ts'
import { describeWith } from '../support/needs.ts'
import { ENGINES, makeTestSite, PROBE, sh, words } from './chain.ts'
import { planOnce } from './launch.ts'

for (const engine of ENGINES) {
  describeWith([engine, 'userns'], `with ${engine}`, () => {
    test('arguments that are not UTF-8 arrive byte for byte', async () => {
      const site = await makeTestSite()
      const argv = cliWords(words(site, { engine }, [PROBE, 'arguments']))
      // Only a shell can make such an argument here.
      const { stdout } = await execa('/bin/sh', ['-c', 'exec "$@" "$(printf "\\377\\376x")" ""', 'sh', ...argv])
      expect(stdout.split('\n')).toEqual(['fffe78', ''])
    })

    test('a hundred runs at once each have their own output', { timeout: 120_000 }, async () => {
      const site = await makeTestSite()
      const numbers = Array.from({ length: 100 }, (_, n) => n)
      const plans = await Promise.all(numbers.map((n) => planOnce({ site, engine, command: sh(`echo run ${n}`) })))
      const outcomes = await Promise.all(plans.map((planned) => planned.run()))
      expect(outcomes.map(({ stdout }) => stdout)).toEqual(numbers.map((n) => `run ${n}\n`))
    })
  })
}
