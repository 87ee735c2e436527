/**
 * The programs for arm64 on a machine that is none, under qemu's user mode: it translates the processor's instructions and hands system
 * calls to this kernel. So what reads and decides is tried here. What builds a sandbox is not: qemu has no clone with namespaces for its
 * guest's processes, no seccomp (the filter would be for this machine's calls), and no Landlock; that needs a machine.
 */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { ACTION, encode } from '../../src/seccomp/bpf.ts'
import { compileRules } from '../../src/seccomp/compile.ts'
import { PROFILE_NAMES, shippedRules } from '../../src/seccomp/rules.ts'
import { MAX_SYSCALL } from '../../src/seccomp/syscalls.ts'
import { nativeCall, simulate } from '../seccomp/simulate.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { partWords } from '../support/host-part.ts'
import { describeWith } from '../support/needs.ts'
import { checkoutFor, currentUser } from '../support/users.ts'

const CHECKOUT = checkoutFor(currentUser())
const CC = 'aarch64-linux-gnu-gcc'
const emulated = (words: readonly string[]) => execa('qemu-aarch64-static', words, { reject: false })

describeWith(['aarch64-cc', 'qemu-aarch64'], 'programs for arm64', () => {
  test('are complete, static, and begin', { timeout: 300_000 }, async () => {
    const bin = join(CHECKOUT, 'build/arm64/bin')
    await execa('make', ['-C', CHECKOUT, 'native', `CC=${CC}`, 'BIN=build/arm64/bin'])
    const names = (await execa('make', ['-s', '-C', CHECKOUT, 'native-programs'])).stdout.split(' ')
    for (const name of names) {
      const { stdout } = await execa('readelf', ['-hlW', join(bin, name)])
      expect(stdout, name).toContain('AArch64')
      expect(stdout, name).not.toContain('INTERP')
    }
    expect((await emulated(partWords('runs', [], bin))).stderr).toContain('usage: runs')
    expect((await emulated(partWords('layers', [], bin))).stderr).toContain('usage: layers')
    expect((await emulated(partWords('launch', [], bin))).stderr).toContain('launch: usage:')
    const tree = await temporaryDirectory()
    await execa(join(CHECKOUT, 'packaging/tree'), [tree, bin], { env: { NATIVE_PROGRAMS: names.join(' ') } })
    const { version } = JSON.parse(await readFile(join(CHECKOUT, 'package.json'), 'utf8'))
    expect((await emulated([join(tree, 'bin/llm-do'), '--version'])).stdout).toContain(version)
  })

  test.each(PROFILE_NAMES)('read the filter %s as the simulator does', async (profile) => {
    const directory = await temporaryDirectory()
    const [tool, file] = [join(directory, 'filter-of'), join(directory, 'filter')]
    const sources = [join(import.meta.dirname, 'filter.c'), join(CHECKOUT, 'native/sandbox/seccomp-eval.c')]
    await execa(CC, ['-static', '-O1', '-D_GNU_SOURCE=', `-I${join(CHECKOUT, 'native')}`, '-o', tool, ...sources])
    const program = compileRules(shippedRules(profile), 'arm64')
    await writeFile(file, encode(program))
    const { stdout } = await emulated([tool, file, String(MAX_SYSCALL)])
    const believed = stdout.split('\n').filter(Boolean).map(Number)
    // A call that an argument decides is taken for refused, so one that lets everything through proves nothing more.
    const refused = believed.filter((number) =>
      [0n, 2n ** 64n - 1n].some(
        (value) => simulate(program, nativeCall('arm64', number, Array(6).fill(value))).action !== ACTION.allow,
      ),
    )
    expect(refused).toEqual([])
    expect(believed).toContain(63) // read(2) of asm-generic/unistd.h
    expect(believed).not.toContain(425) // io_uring_setup(2)
  })
})
