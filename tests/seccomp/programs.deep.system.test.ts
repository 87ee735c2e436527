/** Everyday programs, under the real filter, in every profile that promises them. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { PROFILE_NAMES, type ProfileName } from '../../src/seccomp/rules.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { buildFixtures } from './fixtures.ts'

interface Work {
  readonly title: string
  /** Found on PATH, or the test is skipped. */
  readonly programs: readonly string[]
  readonly script: string
  readonly prints: RegExp
}
const isOnPath = (program: string) =>
  (process.env.PATH ?? '').split(':').some((directory) => existsSync(join(directory, program)))

const HELLO = `printf '#include <stdio.h>\\nint main(void) { puts("hello"); return 0; }\\n' > hello.c`
const WORKS: readonly Work[] = [
  { title: 'gcc compiles', programs: ['gcc'], script: `${HELLO}; gcc hello.c -o hello && ./hello`, prints: /^hello$/ },
  {
    title: 'AddressSanitizer finds a use after free',
    programs: ['gcc'],
    script: `printf '#include <stdlib.h>\\nint main(void) { char *p = malloc(9); free(p); return p[1]; }\\n' > bad.c
             gcc -fsanitize=address bad.c -o bad && ./bad 2>&1 || true`,
    prints: /heap-use-after-free/,
  },
  {
    title: 'python runs a pool of processes',
    programs: ['python3'],
    script: `python3 -c 'import multiprocessing as m; print(sum(m.Pool(3).map(abs, range(100))))'`,
    prints: /^4950$/,
  },
  {
    title: 'node runs a worker thread',
    programs: ['node'],
    script: `node -e 'new (require("worker_threads").Worker)("require(\\"worker_threads\\").parentPort.postMessage(42)", { eval: true }).on("message", console.log)'`,
    prints: /^42$/,
  },
  {
    title: 'java runs a program from source',
    programs: ['java', 'javac'],
    script: `printf 'class M { public static void main(String[] a) { System.out.println("java " + (6 * 7)); } }' > M.java; java M.java`,
    prints: /^java 42$/,
  },
  {
    title: 'go runs a program',
    programs: ['go'],
    script: `printf 'package main\\nfunc main() { c := make(chan int); go func() { c <- 42 }(); println(<-c) }\\n' > m.go
             GOCACHE=$PWD/cache GOFLAGS=-mod=mod go run m.go 2>&1`,
    prints: /^42$/,
  },
  {
    title: 'rustc compiles',
    programs: ['rustc'],
    script: `printf 'fn main() { println!("{}", std::thread::spawn(|| 42).join().unwrap()); }' > m.rs; rustc m.rs && ./m`,
    prints: /^42$/,
  },
]
const DEBUGGERS: readonly Work[] = [
  {
    title: 'strace follows a program',
    programs: ['strace'],
    script: 'strace -f -o log true && grep -c exited log',
    prints: /^1$/,
  },
  {
    title: 'gdb runs a program',
    programs: ['gdb', 'gcc'],
    script: `${HELLO}; gcc -g hello.c -o hello; gdb -nx -batch -ex 'break main' -ex run -ex continue ./hello 2>/dev/null`,
    prints: /exited normally/,
  },
]

async function work(command: [file: string, args: string[]]) {
  return execa(...command, { cwd: await temporaryDirectory(), input: '', reject: false })
}

describe('under the filter', () => {
  const { under } = buildFixtures()
  const run = (profile: ProfileName, { script }: Work) => work(under(profile, ['sh', '-c', script]))
  const everyday = PROFILE_NAMES.flatMap((profile) => WORKS.map((row) => ({ profile, ...row })))
  const debugging = (['default', 'nested'] as const).flatMap((profile) => DEBUGGERS.map((row) => ({ profile, ...row })))
  for (const row of [...everyday, ...debugging]) {
    const missing = row.programs.filter((program) => !isOnPath(program))
    const reason = missing.length === 0 ? '' : ` (skipped, no ${missing.join(', ')} on PATH)`
    test.skipIf(missing.length > 0)(`of ${row.profile} ${row.title}${reason}`, async () => {
      const { stdout, stderr } = await run(row.profile, row)
      expect(stdout, stderr).toMatch(row.prints)
    })
  }

  test.skipIf(!isOnPath('strace'))('of strict nothing can be traced', async () => {
    const { exitCode, stderr } = await run('strict', DEBUGGERS[0]!)
    expect(exitCode).not.toBe(0)
    expect(stderr).toContain('Operation not permitted')
  })
})
