import { spawnSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { ARCHES, MAX_SYSCALL, SYSCALL_NAMES, SYSCALLS } from '../../src/seccomp/syscalls.ts'
import { testWith } from '../support/needs.ts'

/** `#define __NR_read 0` of what the compiler includes. */
function headerNumbers(source: string): ReadonlyMap<string, number> {
  const { stdout } = spawnSync('gcc', ['-E', '-dM', '-xc', '-'], { input: source, encoding: 'utf8' })
  const defined = new Map([...stdout.matchAll(/^#define (__NR\w*) (\w+)$/gm)].map(([, name, value]) => [name!, value!]))
  const resolve = (word: string): number =>
    /^\d+$/.test(word) ? Number(word) : resolve(defined.get(word) ?? 'missing')
  const calls = [...defined].filter(
    ([name]) => name.startsWith('__NR_') && !['__NR_syscalls', '__NR_arch_specific_syscall'].includes(name),
  )
  return new Map(calls.map(([name, word]) => [name.slice('__NR_'.length), resolve(word)]))
}

/** The choices of arch/arm64/include/uapi/asm/unistd.h. */
const ARM64_CHOICES = ['RENAMEAT', 'NEW_STAT', 'SET_GET_RLIMIT', 'TIME32_SYSCALLS', 'SYS_CLONE3', 'MEMFD_SECRET']
  .map((choice) => `#define __ARCH_WANT_${choice}\n`)
  .join('')

const HEADERS = {
  x64: '#include <asm/unistd_64.h>\n',
  arm64: `${ARM64_CHOICES}#include <asm/bitsperlong.h>\n#undef __BITS_PER_LONG\n#define __BITS_PER_LONG 64\n#include <asm-generic/unistd.h>\n`,
} as const

describe('the tables of system calls', () => {
  test.each(ARCHES)('no number of %s has two names', (arch) => {
    expect(new Set(SYSCALLS[arch].values()).size).toBe(SYSCALLS[arch].size)
  })

  test.each(ARCHES)('the recorded maximum is the largest number of %s', (arch) => {
    expect(Math.max(...SYSCALLS[arch].values())).toBe(MAX_SYSCALL)
  })

  test('calls that aarch64 never had are known only on x86_64', () => {
    expect(['open', 'chmod', 'creat', 'mknod', 'fork'].filter((name) => SYSCALLS.arm64.has(name))).toEqual([])
    expect(SYSCALL_NAMES).toContain('chmod')
  })

  for (const arch of ARCHES)
    testWith(['gcc', 'kernel-headers'], `the installed kernel headers agree with the table of ${arch}`, ({ skip }) => {
      const installed = headerNumbers(HEADERS[arch])
      skip(arch === 'x64' && installed.size === 0, 'the headers are of another machine')
      expect(installed.size).toBeGreaterThan(250)
      // Newer headers than ours may name more; those numbers answer ENOSYS until they have been reviewed.
      const ours = SYSCALLS[arch]
      const differing = [...installed].filter(([name, number]) => number <= MAX_SYSCALL && ours.get(name) !== number)
      expect(differing).toEqual([])
      const lastInstalled = Math.max(...installed.values())
      const unlisted = [...ours].filter(([name, number]) => !installed.has(name) && number <= lastInstalled)
      expect(unlisted.map(([name]) => name).filter((name) => !['uretprobe', 'uprobe'].includes(name))).toEqual([])
    })
})
