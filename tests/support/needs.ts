/**
 * Tests that need something of the machine say what:
 *
 *     describeWith('docker', 'the docker backend', () => { ... })
 *     testWith(['root', 'bwrap'], 'a zone is idmapped', async () => { ... })
 *
 * Where it is missing they are skipped and the title says why. In CI, LLM_DO_TEST_REQUIRE lists what must be there: then a
 * missing need is a failed test, because a skipped security test protects nothing.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { describe, type TestFunction, test } from 'vitest'
import { nativeDirectory } from '../../src/os/native-programs.ts'
import { newerNodes } from './nodes.ts'
import { canBePlain, currentUser } from './users.ts'

/** Debian keeps daemons and file system tools out of a plain user's PATH. */
const DIRECTORIES = `${process.env.PATH ?? ''}${delimiter}/usr/local/sbin:/usr/sbin:/sbin`.split(delimiter)

const programOnPath = (name: string): string | undefined =>
  DIRECTORIES.map((directory) => join(directory, name)).find((file) => existsSync(file))

const lacksProgram = (...names: readonly string[]): string | undefined => {
  const missing = names.filter((name) => programOnPath(name) === undefined)
  return missing.length === 0 ? undefined : `no ${missing.join(', ')} on PATH`
}

const lacksRoot = (): string | undefined => (currentUser() === 'root' ? undefined : 'this is not root')

/** Asks the kernel, not a sysctl: several things can forbid it. */
function lacksUserNamespaces(): string | undefined {
  const { status, stderr } = spawnSync('unshare', ['--user', '--map-root-user', 'true'], { encoding: 'utf8' })
  return status === 0 ? undefined : `no user namespaces (${stderr?.trim() ?? 'no unshare'})`
}

function lacksWasi(): string | undefined {
  const compiler = ['clang-16', 'clang'].find((name) => programOnPath(name) !== undefined)
  if (compiler === undefined) return 'no clang on PATH'
  const { status } = spawnSync(compiler, ['--target=wasm32-wasi', '--sysroot=/usr', '-xc', '-', '-o', '/dev/null'], {
    input: 'int main(void) { return 0; }\n',
  })
  return status === 0 ? undefined : `${compiler} cannot build for wasm32-wasi`
}

function lacksLibFuzzer(): string | undefined {
  const compiler = ['clang-16', 'clang'].find((name) => programOnPath(name) !== undefined)
  if (compiler === undefined) return 'no clang on PATH'
  const { status } = spawnSync(compiler, ['-fsanitize=fuzzer,address,undefined', '-xc', '-', '-o', '/dev/null'], {
    input: 'int LLVMFuzzerTestOneInput(const char *data, unsigned long size) { return data && size > 9; }\n',
  })
  return status === 0 ? undefined : `${compiler} has no libFuzzer`
}

/** Of Debian's python3, which is what a sandbox has. */
function lacksPytest(): string | undefined {
  const { status } = spawnSync('/usr/bin/python3', ['-m', 'pytest', '--version'], { stdio: 'ignore' })
  return status === 0 ? undefined : 'no pytest (hint: apt-get install python3-pytest)'
}

/** The whole server, of this machine or unpacked by scripts/setup; a client alone has a directory there, too. */
function lacksPostgres(): string | undefined {
  const unpacked = join(import.meta.dirname, '../../build/servers')
  const look = 'ls /usr/lib/postgresql/*/bin/initdb "$0"/usr/lib/postgresql/*/bin/initdb 2>/dev/null | grep -q .'
  const { status } = spawnSync('sh', ['-c', look, unpacked])
  return status === 0 ? undefined : 'no PostgreSQL here or in build/servers (hint: make setup-test)'
}

/** Of this machine, or unpacked by scripts/setup. */
export const natsServer = (): string | undefined =>
  [...DIRECTORIES, join(import.meta.dirname, '../../build/servers/usr/sbin')]
    .map((directory) => join(directory, 'nats-server'))
    .find((file) => existsSync(file))

/** Of another architecture: not on arm64, with `ia32_emulation=0`, and in some virtual machines. Asked outside of any sandbox. */
export const lacksForeignCalls = (): string | undefined =>
  execFileSync(join(nativeDirectory(), 'probe'), ['i386'], { encoding: 'utf8' }).includes('absent')
    ? 'this kernel takes no system calls of another architecture'
    : undefined

const hasUnpacked = (path: string): boolean => existsSync(join(import.meta.dirname, '../../build/servers', path))

/** The missing part of a need, in words; undefined when it is met. */
const NEEDS = {
  root: lacksRoot,
  /** For the part of a `.user.` file that is the same for every user. */
  'one-user': () => (process.env.LLM_DO_TEST_ROOT_STAGE === undefined ? undefined : 'no user changes it: root has it'),
  'plain-user': () => (canBePlain() ? undefined : 'others cannot read this checkout (hint: make test)'),
  bwrap: () => lacksProgram('bwrap'),
  /** The engine of that name is a system call: what it needs are the namespaces. */
  unshare: lacksUserNamespaces,
  userns: lacksUserNamespaces,
  'foreign-calls': lacksForeignCalls,
  docker: () => lacksRoot() ?? lacksProgram('dockerd', 'docker', 'busybox'),
  podman: () => lacksProgram('podman'),
  vm: () => lacksProgram('qemu-system-x86_64', 'mmdebstrap'),
  wasi: lacksWasi,
  'qemu-aarch64': () => lacksProgram('qemu-aarch64-static'),
  'aarch64-cc': () => lacksProgram('aarch64-linux-gnu-gcc'),
  mmdebstrap: () => lacksProgram('mmdebstrap'),
  libfuzzer: lacksLibFuzzer,
  cargo: () => lacksProgram('cargo'),
  gcc: () => lacksProgram('gcc'),
  fakeroot: () => lacksProgram('fakeroot'),
  git: () => lacksProgram('git'),
  python: () => lacksProgram('python3'),
  pytest: lacksPytest,
  chromium: () => lacksProgram('chromium-headless-shell'),
  postgres: lacksPostgres,
  tmux: () => lacksProgram('tmux'),
  zsh: () => lacksProgram('zsh'),
  fish: () => lacksProgram('fish'),
  man: () => lacksProgram('man'),
  'dpkg-deb': () => lacksProgram('dpkg-deb'),
  mandoc: () => lacksProgram('mandoc'),
  'ssh-agent': () => lacksProgram('ssh-agent', 'ssh-add', 'ssh'),
  strace: () => lacksProgram('strace'),
  'systemd-analyze': () => lacksProgram('systemd-analyze'),
  'network-clients': () =>
    lacksProgram(
      ...'curl wget busybox git ssh java javac go rustc gcc musl-gcc psql redis-cli dig nc npm'.split(' '),
      ...['chromium-headless-shell', 'openssl'],
    ),
  /** Debian's redis-server is this program under another name. */
  redis: () => lacksProgram('redis-check-rdb'),
  gh: () =>
    programOnPath('gh') !== undefined || hasUnpacked('usr/bin/gh') ? undefined : 'no gh (hint: make setup-test)',
  nats: () => (natsServer() ? undefined : 'no nats-server here or in build/servers (hint: make setup-test)'),
  'newer-nodes': () => (newerNodes().length > 1 ? undefined : 'no nodes in build/nodes (hint: make setup-test)'),
  kvm: () => (existsSync('/dev/kvm') ? undefined : 'no /dev/kvm'),
  'kernel-headers': () => (existsSync('/usr/include/linux/landlock.h') ? undefined : 'no /usr/include/linux'),
} as const satisfies Record<string, () => string | undefined>

export type Need = keyof typeof NEEDS

const requiredNeeds = (): readonly string[] => (process.env.LLM_DO_TEST_REQUIRE ?? '').split(',').filter(Boolean)

/** The needs that are not met here, each with what is missing. */
export function unmetNeeds(needs: readonly Need[]): readonly { readonly need: Need; readonly reason: string }[] {
  return needs.flatMap((need) => {
    if (!asked.has(need)) asked.set(need, NEEDS[need]())
    const reason = asked.get(need)
    return reason === undefined ? [] : [{ need, reason }]
  })
}

/** A test of each row of a table may ask for the same. */
const asked = new Map<Need, string | undefined>()

export interface Verdict {
  readonly kind: 'run' | 'skip' | 'fail'
  /** Why, for the title; empty when the tests run. */
  readonly reason: string
}

/** Run, skip or fail: a need that is required and unmet fails. */
export function judgeNeeds(
  unmet: readonly { readonly need: string; readonly reason: string }[],
  required: readonly string[],
): Verdict {
  if (unmet.length === 0) return { kind: 'run', reason: '' }
  const reason = unmet.map(({ need, reason }) => `${need}: ${reason}`).join('; ')
  return { kind: unmet.some(({ need }) => required.includes(need)) ? 'fail' : 'skip', reason }
}

const judge = (needs: Need | readonly Need[]): Verdict =>
  judgeNeeds(unmetNeeds(typeof needs === 'string' ? [needs] : needs), requiredNeeds())

const mustHave = (reason: string) => (): never => {
  throw new Error(`LLM_DO_TEST_REQUIRE names what is missing here: ${reason}`)
}

/** A describe block that is skipped, with the reason in its title, where a need is unmet. */
export function describeWith(needs: Need | readonly Need[], title: string, body: () => void): void {
  const { kind, reason } = judge(needs)
  if (kind === 'run') describe(title, body)
  else if (kind === 'skip') describe.skip(`${title} (skipped, ${reason})`, body)
  else describe(title, () => test('what it needs is there', mustHave(reason)))
}

/** A test that is skipped, with the reason in its title, where a need is unmet. */
export function testWith(needs: Need | readonly Need[], title: string, body: TestFunction): void {
  const { kind, reason } = judge(needs)
  if (kind === 'run') test(title, body)
  else if (kind === 'skip') test.skip(`${title} (skipped, ${reason})`, body)
  else test(title, mustHave(reason))
}
