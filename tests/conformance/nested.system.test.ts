/**
 * Namespace sandboxes inside containers, as on a CI runner: what each kind of container allows, and what we say where it does
 * not. The recipes of docs/guide/ci.md are the rows that work.
 */
import { cp } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { execa } from 'execa'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Result } from '../../src/report/result.ts'
import { bundle } from '../support/bundle.ts'
import { newDirectory } from '../support/directory.ts'
import { LINKS_IMAGE, startDocker, type TestDocker } from '../support/docker.ts'
import { describeWith } from '../support/needs.ts'

const ROOT = join(import.meta.dirname, '../..')
const RECIPE = ['seccomp=unconfined', 'systempaths=unconfined', 'no-new-privileges'].flatMap((word) => [
  '--security-opt',
  word,
])
const ORDINARY = ['--user', '1000:1000', '--cap-drop', 'ALL']

describeWith(['docker', 'bwrap', 'userns'], 'a namespace sandbox inside a container', () => {
  const state: { docker?: TestDocker; app: string; remove: () => Promise<void> } = {
    app: '',
    remove: async () => undefined,
  }
  beforeAll(async () => {
    const { path, remove } = await newDirectory({ mode: 0o755 })
    Object.assign(state, { app: path, remove, docker: await startDocker({ images: [LINKS_IMAGE] }) })
    for (const name of ['bin', 'dist', 'profiles', 'package.json'])
      await cp(join(ROOT, name), join(path, name), { recursive: true })
    for (const name of ['reach-out.py', 'stand-outside.py'])
      await cp(join(ROOT, 'tests/programs', name), join(path, name))
    await bundle(join(import.meta.dirname, '../programs/run-inside.ts'), join(path, 'dist'))
    await execa('chmod', ['--recursive', 'a+rX', path])
  })
  afterAll(async () => {
    await state.docker?.stop()
    await state.remove()
  })

  async function inside(words: readonly string[], command: readonly string[]): Promise<Partial<Result>> {
    const stdout = await runInContainer(words, [process.execPath, '/app/dist/program.mjs', ...command])
    return JSON.parse(stdout) as Partial<Result>
  }

  async function runInContainer(words: readonly string[], command: readonly string[]): Promise<string> {
    const node = dirname(process.execPath)
    const mounts = [
      ['/usr', '/usr'],
      [state.app, '/app'],
      // A node that is not below /usr comes along as it is.
      ...(node.startsWith('/usr/') ? [] : [[dirname(node), dirname(node)]]),
    ].flatMap(([source, target]) => ['--mount', `type=bind,source=${source},target=${target},readonly`])
    const scratch = ['--tmpfs', '/tmp:exec,mode=1777', '--workdir', '/app']
    const run = ['run', '--rm', '--pull', 'never', '--network', 'none', ...mounts, ...scratch, ...words, LINKS_IMAGE]
    return (await state.docker?.client(...run, ...command)) ?? ''
  }

  // As a script of the container, whose other process is the control: of a daemon of the same user, in the same container.
  test('without namespaces works in a default container, by name only', async () => {
    const script = `
      cd /tmp; mkdir zone outside; echo secret >outside/secret; cp /app/reach-out.py zone; cd zone; mkfifo ../line
      sleep infinity | python3 /app/stand-outside.py socket >../line &
      read -r pid tcp udp name address <../line
      try() { "$@" python3 reach-out.py /tmp/outside/secret $pid $tcp $udp $name /tmp/outside $address socket; }
      try | tr '\\n' ' '
      try /app/bin/llm-do-exec --backend no-namespaces --rw . -- 2>../err || cat ../err
      /app/bin/llm-do-exec --rw . -- echo ran 2>&1 | grep hint:`
    const stdout = await runInContainer(['--user', '1000:1000'], ['bash', '-c', script])
    const [plain = '', held, ...hints] = stdout.trimEnd().replace('tried ', 'tried\n').split('\n')
    expect({ plain: plain.split(' '), held, hints }).toEqual({
      plain: expect.arrayContaining(['read', 'tcp', 'socket-file', 'abstract', 'signal', 'environ', 'shm', 'tried']),
      held: 'tried',
      hints: [expect.stringContaining('--backend no-namespaces')],
    })
  })

  test('works in full with the recipe: no filter, unmasked /proc, an ordinary user without capabilities', async () => {
    const script =
      'id -u; grep -E "^(CapEff|Seccomp:)" /proc/self/status; ls /app 2>&1 | wc -l; cat /proc/net/dev | grep -c :'
    const result = await inside([...RECIPE, ...ORDINARY], ['sh', '-c', script])
    expect(result).toMatchObject({
      backend: 'namespace',
      exitCode: 0,
      isolation: { fs: 'empty-root', pid: true, net: 'none' },
    })
    expect(result.stdout).toContain('CapEff:\t0000000000000000\nSeccomp:\t2\n')
  })

  test.each<readonly [string, readonly string[], RegExp]>([
    ['a default container', [], /the seccomp filter of the surrounding container forbids new namespaces/],
    [
      'a container without a filter',
      ['--security-opt', 'seccomp=unconfined'],
      /\/proc of the surrounding container is masked/,
    ],
  ])('is refused in %s, with the reason and the recipe', async (_what, words, reason) => {
    const { error } = await inside(words, ['true'])
    expect(error).toMatchObject({ code: 'NO_BACKEND', message: expect.stringMatching(reason) })
    expect(error?.hint).toContain('--security-opt seccomp=unconfined --security-opt systempaths=unconfined')
  })
})
