/** The sentences of the contract that every backend must keep: what is asked, and what the world must look like afterwards. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { SandboxInput } from '../../src/policy/keys/index.ts'
import type { Result } from '../../src/report/result.ts'

/** Needs of a sentence in addition to starting a program; a backend that lacks one skips the sentence and says so. */
export type Ability = 'shell' | 'memory-limit' | 'pids-limit' | 'tmpfs' | 'walls'

export interface SentenceInput {
  /** For a POSIX shell. */
  readonly script: string
  /** The same for tests/programs/wasi-guest.c, where a WASI module can do it. */
  readonly wasi?: readonly string[]
  readonly values?: SandboxInput
  readonly stdin?: Uint8Array
}

export interface SentenceRun {
  readonly result: Result
  /** Directory with `ro/` and `rw/`, the sources of the zones /ro and /rw, and `outside/`. */
  readonly world: string
}

export interface Sentence {
  readonly id: string
  readonly title: string
  readonly needs: readonly Ability[]
  readonly input: SentenceInput
  readonly holds: (run: SentenceRun) => void
}

const inWorld = (world: string, path: string): string => join(world, path)

export const SENTENCES: readonly Sentence[] = [
  ...[0, 3, 125, 126, 127].map(
    (code): Sentence => ({
      id: `exit-${code}`,
      title: `the exit code ${code} of the command is the result's`,
      needs: [],
      input: { script: `exit ${code}`, wasi: ['exit', String(code)] },
      holds: ({ result }) =>
        expect(result).toMatchObject({ reason: 'exit', exitCode: code, signal: null, ok: code === 0 }),
    }),
  ),
  {
    id: 'exit-137',
    title: 'exit code 137 differs from an end by SIGKILL',
    needs: ['shell'],
    input: { script: "sh -c 'kill -9 $$'; exit 137" },
    holds: ({ result }) => expect(result).toMatchObject({ reason: 'exit', exitCode: 137, signal: null }),
  },
  {
    id: 'sigkill',
    title: 'an end by SIGKILL differs from exit code 137',
    needs: ['shell'],
    input: { script: 'kill -9 $$' },
    holds: ({ result }) => expect(result).toMatchObject({ reason: 'signal', exitCode: null, signal: 'SIGKILL' }),
  },
  {
    id: 'streams',
    title: 'stdin, stdout and stderr pass through, binary safe',
    needs: ['shell'],
    input: { script: 'cat; printf err >&2', stdin: Buffer.from('a\r\nb\tc\n\n') },
    holds: ({ result }) => expect(result).toMatchObject({ stdout: 'a\r\nb\tc\n\n', stderr: 'err' }),
  },
  {
    id: 'environment',
    title: 'the environment holds what the policy names, unchanged, and nothing of the caller',
    needs: [],
    input: {
      script: 'printf "%s\\n" "$WORD"; printf "%s" "$LLM_DO_TEST_SECRET"',
      wasi: ['env', 'WORD'],
      values: { env: { set: { WORD: ' "a"\n\\b ' } } },
    },
    holds: ({ result }) => expect(result.stdout).toBe(' "a"\n\\b \n'),
  },
  {
    id: 'ro-zone',
    title: 'a read-only zone can be read and not changed',
    needs: ['walls'],
    input: { script: 'cat /ro/file; echo x > /ro/file; echo x > /ro/new; rm -f /ro/file', wasi: ['write', '/ro/file'] },
    holds: ({ world }) => {
      expect(readdirSync(inWorld(world, 'ro')).filter((name) => name !== 'guest.wasm')).toEqual(['file'])
      expect(readFileSync(inWorld(world, 'ro/file'), 'utf8')).toBe('original')
    },
  },
  {
    id: 'rw-zone',
    title: 'what is written to a rw zone is on the host afterwards',
    needs: ['walls'],
    input: { script: 'printf written > /rw/new', wasi: ['write', '/rw/new'] },
    holds: ({ world }) => expect(readFileSync(inWorld(world, 'rw/new'), 'utf8')).toBe('written'),
  },
  {
    id: 'protected',
    title: 'a protected path in a rw zone stays as it is, also when it does not exist',
    needs: ['walls'],
    input: {
      script: 'echo x > /rw/.mcp.json; mkdir -p /rw/.git/hooks; echo x > /rw/.git/hooks/pre-commit',
      wasi: ['write', '/rw/.mcp.json'],
    },
    holds: ({ world }) => {
      expect(existsSync(inWorld(world, 'rw/.mcp.json'))).toBe(false)
      expect(existsSync(inWorld(world, 'rw/.git'))).toBe(false)
    },
  },
  {
    id: 'outside',
    title: 'a file outside the zones does not exist',
    needs: ['walls'],
    // $OUTSIDE is replaced by its path.
    input: { script: 'cat $OUTSIDE', wasi: ['read', '$OUTSIDE'] },
    holds: ({ result }) => {
      expect(result.exitCode).not.toBe(0)
      expect(result.stdout).not.toContain('secret')
    },
  },
  {
    id: 'network',
    title: 'without a network there is only lo',
    needs: ['shell', 'walls'],
    input: { script: 'cat /proc/net/dev | grep -c :' },
    holds: ({ result }) => expect(result.stdout).toBe('1\n'),
  },
  {
    id: 'root',
    title: 'the command is not root and has no capabilities',
    needs: ['shell', 'walls'],
    input: { script: '[ "$(id -u)" != 0 ] && grep CapEff /proc/self/status' },
    holds: ({ result }) => expect(result.stdout).toBe('CapEff:\t0000000000000000\n'),
  },
  {
    id: 'filter',
    title: 'the system call filter refuses new namespaces and setuid bits',
    needs: ['shell', 'walls'],
    input: { script: 'unshare -U true 2>/dev/null || echo no; touch /tmp/f; chmod 4755 /tmp/f 2>/dev/null || echo no' },
    holds: ({ result }) => expect(result.stdout).toBe('no\nno\n'),
  },
  {
    id: 'var-tmp',
    title: '/var/tmp is writable and of a bounded size',
    needs: ['shell', 'walls'],
    input: {
      script: 'echo written >/var/tmp/f; cat /var/tmp/f; head -c 2m /dev/zero >/var/tmp/full 2>/dev/null || echo full',
      values: { resources: { tmp: '1m' } },
    },
    holds: ({ result }) => expect(result.stdout).toBe('written\nfull\n'),
  },
  {
    id: 'scratch',
    title: '/tmp is writable, sized and gone afterwards',
    needs: ['shell', 'tmpfs'],
    input: {
      script: 'echo x > /tmp/llm-do-conformance && dd if=/dev/zero of=/tmp/big bs=1M count=20 2>/dev/null || echo full',
      values: { resources: { tmp: '4m' } },
    },
    holds: ({ result }) => {
      expect(result.stdout).toBe('full\n')
      expect(existsSync('/tmp/llm-do-conformance')).toBe(false)
    },
  },
  {
    id: 'deadline',
    title: 'at the deadline everything ends and what was printed is kept',
    needs: [],
    input: { script: 'echo early; sleep 60 & sleep 60', wasi: ['loop'], values: { resources: { timeout: '3s' } } },
    holds: ({ result }) => expect(result).toMatchObject({ reason: 'timeout', stdout: 'early\n', ok: false }),
  },
  {
    id: 'memory',
    title: 'above the memory limit the command is ended, and the result says memory',
    needs: ['shell', 'memory-limit'],
    input: { script: 'exec dd if=/dev/zero of=/dev/null bs=400M count=1000', values: { resources: { memory: '64m' } } },
    holds: ({ result }) => expect(result).toMatchObject({ reason: 'memory', ok: false }),
  },
  {
    id: 'output',
    title: 'output beyond the cap is counted, head and tail are kept',
    needs: ['shell'],
    input: { script: 'printf head; yes | head -c 1000000; printf tail', values: { resources: { output: '1k' } } },
    holds: ({ result }) => {
      expect(result.stdout).toMatch(/^head[\s\S]*tail$/)
      expect(result.truncated.stdout).toBe(1_000_008 - 1024)
    },
  },
  {
    id: 'not-found',
    title: 'a program that is not there differs from exit code 127',
    needs: ['shell'],
    input: { script: '' },
    holds: ({ result }) =>
      expect(result).toMatchObject({ reason: 'setup', exitCode: null, error: { code: 'COMMAND_NOT_FOUND' } }),
  },
]
