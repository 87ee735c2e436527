/** Kernels that lack a call the chain wants: it takes its other way with every protection, or refuses and says what is missing. */
import { expect, test } from 'vitest'
import { statusValue } from '../../src/doctor/contract-types.ts'
import { kernelThat } from '../support/kernel.ts'
import { describeWith } from '../support/needs.ts'
import { makeTestSite, PROBE, sh } from './chain.ts'
import { planOnce, supervised } from './launch.ts'

const MISSING = [
  { calls: 'clone3', names: ['clone3'] },
  { calls: 'close_range', names: ['close_range'] },
  { calls: 'openat2', names: ['openat2'] },
  { calls: 'mount_setattr', names: ['mount_setattr'] },
  {
    calls: 'the Landlock calls',
    names: ['landlock_create_ruleset', 'landlock_add_rule', 'landlock_restrict_self'],
  },
  { calls: 'the new mount calls', names: ['open_tree', 'move_mount', 'fsopen', 'fsconfig', 'fsmount'] },
] as const

/** Everything a weaker chain would show: capabilities, filter, masks, root, protected path, sockets in the zone. */
const LOOK = [
  'cat /proc/self/status',
  `${PROBE} kind /proc/kallsyms; ${PROBE} flags / /proc/sys /zone; ${PROBE} make-in /zone; ${PROBE} descriptors`,
  // The run is stopped here.
  'mkdir /zone/.vscode; sleep 20; echo planted',
].join('\n')

function expectWalls(text: string): void {
  expect(statusValue(text, 'CapBnd')).toBe('0000000000000000')
  expect(statusValue(text, 'CapEff')).toBe('0000000000000000')
  expect(statusValue(text, 'NoNewPrivs')).toBe('1')
  expect(text).toContain('/proc/kallsyms null')
  expect(text).toContain('/ ro,nosuid,nodev')
  expect(text).toMatch(/^\/proc\/sys ro/m)
  expect(text).toContain('/zone rw,nosuid,nodev')
  expect(text).toContain('fifo EACCES')
  expect(text).toMatch(/^0\n1\n2$/m)
  expect(text).not.toContain('planted')
}

describeWith(['gcc', 'userns'], 'on a kernel without a call', () => {
  test.each(MISSING)('without $calls the walls stand or the run is refused', async ({ names }) => {
    const kernel = await kernelThat([{ refuses: names, with: 'ENOSYS' }])
    const launch = (await planOnce({ site: await makeTestSite(), engine: 'unshare', command: sh(LOOK) })).launch()
    const outcome = await supervised(launch, kernel)
    if (outcome.reason === 'setup') {
      expect(outcome.failure).toMatchObject({ errno: 'ENOSYS' })
      expect(outcome.failure?.step).not.toBe('')
    } else expectWalls(Buffer.from(outcome.stdout.head).toString())
  })
})
