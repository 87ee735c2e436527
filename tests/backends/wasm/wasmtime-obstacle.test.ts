import { expect, test } from 'vitest'
import { wasmtimeObstacle } from '../../../src/backends/wasm/wasmtime-obstacle.ts'

const wasmtime = { path: '/home/user/.wasmtime/bin/wasmtime', version: '43.0.1', setuid: false }
const NO_WALLS = { why: 'the kernel says no', fix: 'ask the administrator' }

test('wasmtime can be used where it is new enough and a sandbox stands around it', () => {
  expect(wasmtimeObstacle({ wasmtime }, undefined)).toBeUndefined()
})

test.each([
  ['it is not there', {}, undefined, /no wasmtime on PATH/, /leave out --runtime wasmtime/],
  ['it is setuid', { wasmtime: { ...wasmtime, setuid: true } }, undefined, /is setuid/, /chmod u-s/],
  ['it has no --argv0 yet', { wasmtime: { ...wasmtime, version: '23.0.2' } }, undefined, /older than 24/, /leave out/],
  ['its version is not known', { wasmtime: { ...wasmtime, version: '' } }, undefined, /version unknown/, /leave out/],
  ['nothing holds its zones', { wasmtime }, NO_WALLS, /no read-only directories.*the kernel says no/, /administrator/],
])('wasmtime cannot be used where %s', (_why, facts, walls, why, fix) => {
  expect(wasmtimeObstacle(facts, walls)).toEqual({ why: expect.stringMatching(why), fix: expect.stringMatching(fix) })
})
