/** The supervisor of the guard, with programs in the guard's place. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { startWatch } from '../../../src/backends/docker/guard.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { DOCKER_INPUTS, dockerPlan, plannedZone } from '../plans.ts'

describe('a guard that ends', () => {
  const watchBy = async (script: string, source: string) => {
    const guard = join(await temporaryDirectory(), 'guard')
    await writeFile(guard, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
    const zones = [plannedZone({ source, target: '/w', mode: 'rw', protect: ['.mcp.json'] })]
    const docker = { ...DOCKER_INPUTS, guard }
    return startWatch({ plan: dockerPlan({ zones }), docker, name: 'none', runId: 'none', socket: undefined })
  }

  test('before it watches refuses the run', async () => {
    await expect(watchBy('exit 125', await temporaryDirectory())).rejects.toMatchObject({ code: 'ZONE_INVALID' })
  })

  test('while it watches is an alarm, and what the run did is lost', async () => {
    const source = await temporaryDirectory()
    const go = join(source, 'go')
    const watch = await watchBy(`echo '{"watching":true}'; until [ -e ${go} ]; do sleep 0.05; done; kill -9 $$`, source)
    await writeFile(go, '')
    await watch.alarm
    expect(await watch.end()).toBe('lost')
  })
})
