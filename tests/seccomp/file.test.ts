import { describe, expect, test } from 'vitest'
import { SandboxError } from '../../src/error.ts'
import { parseSeccompFile } from '../../src/seccomp/file.ts'

const parse = (text: string) => parseSeccompFile({ text, source: 'filter.yaml' })

function refusal(text: string): SandboxError {
  try {
    parse(text)
  } catch (error) {
    if (error instanceof SandboxError) return error
    throw error
  }
  throw new Error('was accepted')
}

describe('a filter file', () => {
  test('starts from a profile, allows and denies', () => {
    const text =
      'extends: strict\nallow: [ptrace]\ndeny:\n  - { names: [chown, fchown], errno: EACCES }\n  - { names: [kill] }\n'
    expect(parse(text)).toEqual({
      extends: 'strict',
      allow: ['ptrace'],
      deny: [
        { names: ['chown', 'fchown'], errno: 'EACCES' },
        { names: ['kill'], errno: 'EPERM' },
      ],
    })
  })

  test('may be JSON', () => {
    expect(parse('{"extends": "nested"}')).toEqual({ extends: 'nested', allow: [], deny: [] })
  })

  test('extends the default profile when it does not say', () => {
    expect(parse('allow: [bpf]').extends).toBe('default')
  })

  const BAD: readonly (readonly [string, string, string])[] = [
    [
      'a system call that does not exist',
      'deny: [{ names: [mont] }]',
      'filter.yaml: deny.0.names.0: expected a system call of Linux on x86_64 or aarch64, got "mont" (string). Did you mean "mount"?',
    ],
    [
      'an unknown key',
      'alow: [bpf]',
      'filter.yaml: alow: expected one of extends, allow, deny, got the unknown key "alow". Did you mean "allow"?',
    ],
    [
      'an unknown key of a denial',
      'deny: [{ names: [bpf], error: EPERM }]',
      'filter.yaml: deny.0.error: expected one of names, errno, got the unknown key "error". Did you mean "errno"?',
    ],
    [
      'an unknown profile',
      'extends: nestd',
      'filter.yaml: extends: expected one of default, strict, nested, got "nestd" (string). Did you mean "nested"?',
    ],
    [
      'an unknown error',
      'deny: [{ names: [bpf], errno: EPREM }]',
      'filter.yaml: deny.0.errno: expected one of EPERM, ENOENT, ESRCH, EAGAIN, EACCES, EBUSY, ENODEV, EINVAL, ENOSYS, EPROTONOSUPPORT, EOPNOTSUPP, EAFNOSUPPORT, got "EPREM" (string). Did you mean "EPERM"?',
    ],
    [
      'a number for a name',
      'allow: [7]',
      'filter.yaml: allow.0: expected a system call of Linux on x86_64 or aarch64, got 7 (number).',
    ],
    ['a word for a list', 'allow: bpf', 'filter.yaml: allow: expected a list, got "bpf" (string).'],
    ['a list for a file', '[bpf]', 'filter.yaml: the file: expected a mapping, got a list.'],
    ['an empty file', '', 'filter.yaml: the file: expected a mapping, got nothing.'],
  ]
  test.each(BAD)('with %s is refused, with what was expected', (_, text, problem) => {
    const error = refusal(text)
    expect(error.code).toBe('POLICY_INVALID')
    expect(error.problems).toEqual([problem])
  })

  test('reports everything that is wrong at once', () => {
    expect(refusal('extends: x\nallow: [y]\nz: 1\n').problems).toHaveLength(3)
  })

  test('that is no YAML is refused with the place', () => {
    const error = refusal('allow: [bpf\n')
    expect(error.code).toBe('PROFILE_UNREADABLE')
    expect(error.message).toMatch(/^filter\.yaml:2:1: /)
  })
})

describe('the one YAML reader', () => {
  test.each([
    ['a megabyte of brackets', '['.repeat(1_000_000), /nesting of at most 64 levels/],
    ['a directive', '%YAML 1.1\n---\nextends: strict\n', /expected no directives/],
    ['an unknown tag', 'extends: !!js/function "x"\n', /tag/],
  ])('bounds filter files, too: %s is refused', (_, text, reason) => {
    const error = refusal(text)
    expect(error.code).toBe('PROFILE_UNREADABLE')
    expect(error.message).toMatch(reason)
  })
})
