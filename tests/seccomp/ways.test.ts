import { describe, expect, test } from 'vitest'
import { parseSeccompFile } from '../../src/seccomp/file.ts'
import { SHIPPED_WAYS } from '../../src/seccomp/filter.ts'
import { shippedRules } from '../../src/seccomp/rules.ts'
import { ARCHES } from '../../src/seccomp/syscalls.ts'
import { mountWays } from '../../src/seccomp/ways.ts'

describe.each(ARCHES)('The ways to change mounts on %s', (arch) => {
  test.each(['default', 'strict', 'nested', 'off'] as const)(
    'under the shipped filter %s are those that the plan counts on',
    (name) => {
      expect(mountWays(shippedRules(name), arch)).toEqual(SHIPPED_WAYS[name])
    },
  )

  test.each([
    ['extends: default\n', []],
    ['extends: default\nallow: [unshare]\n', []],
    ['extends: default\nallow: [clone, mount]\n', ['mount']],
    ['extends: default\nallow: [clone3, umount2]\n', ['mount']],
    ['extends: default\nallow: [unshare, pivot_root]\n', ['mount']],
    ['extends: default\nallow: [unshare, move_mount]\n', ['mount']],
    ['extends: default\nallow: [mount, umount2, pivot_root]\n', []],
    ['extends: default\nallow: [unshare, open_tree]\n', []],
    ['extends: default\nallow: [unshare, open_tree, setns]\n', ['tree']],
    ['extends: nested\n', ['mount']],
    ['extends: nested\ndeny: [{ names: [unshare, clone, clone3] }]\n', []],
    ['extends: nested\ndeny: [{ names: [mount, umount2, pivot_root] }]\n', []],
  ])('under the file %j are %j', (text, ways) => {
    expect(mountWays(parseSeccompFile({ text, source: 'filter.yaml' }), arch)).toEqual(ways)
  })
})
