/** Placeholders: what keeps a protected path that does not exist yet from being made, and that nothing of it stays. */
import { existsSync, readdirSync } from 'node:fs'
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { helpersDirectory } from '../../src/native.ts'
import { runChild } from '../../src/supervisor/child.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { ENGINES, makePlace, type Place, sh } from './chain.ts'
import { planOnce } from './launch.ts'

const PLANT =
  'mkdir -p /zone/.vscode; echo evil >/zone/.vscode/tasks.json; echo evil >/zone/.mcp.json; mv /zone/.vscode /zone/x'
const WAIT = 'touch /zone/begun-$$; until test -e /zone/go; do sleep 0.02; done'

const hiddenNames = ({ zone }: Place): readonly string[] => readdirSync(zone).filter((name) => name.startsWith('.'))
const begun = ({ zone }: Place): number => readdirSync(zone).filter((name) => name.startsWith('begun')).length

async function until(claim: () => boolean): Promise<void> {
  for (let left = 400; left > 0 && !claim(); left--) await sleep(10)
  expect(claim()).toBe(true)
}

for (const engine of ENGINES) {
  describeWith([engine, 'userns'], `with ${engine}`, () => {
    test('protected paths that do not exist are not there after the run', async () => {
      const place = await makePlace()
      const planned = await planOnce({ place, engine, command: sh(`${PLANT}; echo done`) })
      expect((await planned.run()).stdout).toBe('done\n')
      expect(hiddenNames(place)).toEqual([])
    })

    test('a run that ends leaves the protection of another run in the same directory in place', async () => {
      const place = await makePlace()
      const long = await planOnce({ place, engine, command: sh(`${WAIT}; ${PLANT}; echo done`) })
      const short = await planOnce({ place, engine, command: ['/bin/true'] })
      const running = long.run()
      await until(() => begun(place) === 1)
      await short.run()
      expect(hiddenNames(place)).toContain('.vscode')
      await writeFile(join(place.zone, 'go'), '')
      expect((await running).stdout).toBe('done\n')
      expect(hiddenNames(place)).toEqual([])
    })

    test('what a killed launcher left is gone after the next start', async () => {
      const place = await makePlace()
      const runsDirectory = join(await temporaryDirectory(), 'runs')
      const planned = await planOnce({ place, engine, command: sh(`${WAIT}`), runsDirectory })
      const pid = { launch: 0 }
      const end = runChild({
        launch: planned.launch(),
        stdio: { mode: 'capture', stdin: 'ignore', outputCap: null },
        onStart: (started) => (pid.launch = started),
        stop: async () => undefined,
      })
      await until(() => begun(place) === 1)
      process.kill(pid.launch, 'SIGKILL')
      await end
      expect(hiddenNames(place)).toContain('.vscode')
      await execa(join(helpersDirectory(), 'runs'), ['prune', runsDirectory])
      expect(hiddenNames(place)).toEqual([])
      expect(readdirSync(runsDirectory)).toEqual([])
    })

    test('a directory of the user that is exchanged for a protected one during the run is not taken away', async () => {
      const place = await makePlace()
      const planned = await planOnce({ place, engine, command: sh(WAIT) })
      const running = planned.run()
      await until(() => begun(place) === 1)
      const own = join(place.base, 'own')
      await mkdir(own)
      await writeFile(join(own, 'settings.json'), 'mine')
      await rename(join(place.zone, '.vscode'), join(place.zone, 'moved'))
      await rename(own, join(place.zone, '.vscode'))
      await writeFile(join(place.zone, 'go'), '')
      await running
      expect(existsSync(join(place.zone, '.vscode', 'settings.json'))).toBe(true)
    })
  })
}
