import { describe, expect, test } from 'vitest'
import { parseSeccompFile } from '../../src/seccomp/file.ts'
import { refused } from '../support/refused.ts'

const parse = (text: string) => parseSeccompFile({ text, source: 'filter.yaml' })

const refusal = (text: string) => refused(() => parse(text))

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

  const CALL = 'expected a system call of Linux on x86_64 or aarch64, got'
  const ERRNOS =
    'EPERM, ENOENT, ESRCH, EAGAIN, EACCES, EBUSY, ENODEV, EINVAL, ENOSYS, EPROTONOSUPPORT, EOPNOTSUPP, EAFNOSUPPORT'
  test.each([
    ['deny: [{ names: [mont] }]', `deny.0.names.0: ${CALL} "mont" (string). Did you mean "mount"?`],
    ['alow: [bpf]', 'alow: expected one of extends, allow, deny, got the unknown key "alow". Did you mean "allow"?'],
    [
      'deny: [{ names: [bpf], error: EPERM }]',
      'deny.0.error: expected one of names, errno, got the unknown key "error". Did you mean "errno"?',
    ],
    ['extends: nest', 'extends: expected one of default, strict, nested, got "nest" (string). Did you mean "nested"?'],
    [
      'deny: [{ names: [bpf], errno: EPREM }]',
      `deny.0.errno: expected one of ${ERRNOS}, got "EPREM" (string). Did you mean "EPERM"?`,
    ],
    ['allow: [7]', `allow.0: ${CALL} 7 (number).`],
    ['allow: bpf', 'allow: expected a list, got "bpf" (string).'],
    ['[bpf]', 'the file: expected a mapping, got a list.'],
    ['', 'the file: expected a mapping, got nothing.'],
  ])('%j is refused, with what was expected', (text, problem) => {
    const error = refusal(text)
    expect([error.code, error.problems]).toEqual(['POLICY_INVALID', [`filter.yaml: ${problem}`]])
  })

  test('reports everything that is wrong at once', () => {
    expect(refusal('extends: x\nallow: [y]\nz: 1\n').problems).toHaveLength(3)
  })

  test('that is no YAML is refused with the place', () => {
    const error = refusal('allow: [bpf\n')
    expect(error.code).toBe('PROFILE_UNREADABLE')
    expect(error.message).toMatch(/^filter\.yaml:2:1: /)
    expect(refusal('['.repeat(1_000_000)).message).toContain('nesting of at most 64 levels')
  })
})
