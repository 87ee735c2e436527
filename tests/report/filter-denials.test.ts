import { expect, test } from 'vitest'
import { saidFilterDenials } from '../../src/report/filter-denials.ts'
import { plan } from './fixtures.ts'

const under = (profile: string) => plan({ seccomp: { ...plan({}).seccomp, profile } })
const fixes = (text: string, profile: string): readonly string[] =>
  saidFilterDenials(text, under(profile)).map(({ fix }) => fix)

const NAMESPACES = [
  'unshare: unshare failed: Operation not permitted',
  'bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user namespaces.',
  'bwrap: Creating new namespace failed: Operation not permitted',
  'Failed to move to new namespace: PID namespaces supported, but failed: errno = Operation not permitted',
  '[1:1:ERROR:zygote_host_impl_linux.cc(130)] No usable sandbox!',
]

test.each(NAMESPACES)('%s', (line) => {
  expect(fixes(`${line}\n`, 'default')).toEqual(['--seccomp nested'])
  expect(fixes(`${line}\n`, 'strict')).toEqual(['--seccomp nested'])
  // A call that the profile lets through was refused by something else.
  for (const profile of ['nested', 'off', '/etc/filter.yaml', 'constructor']) expect(fixes(line, profile)).toEqual([])
})

test.each(['chown: changing ownership of x: Operation not permitted', 'unshare: done', 'cannot share namespace', ''])(
  'nothing is made of: %s',
  (line) => {
    expect(fixes(line, 'strict')).toEqual([])
  },
)
