import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import type { GivenOptions } from '../../src/policy/option-layer.ts'
import { processMemory } from '../../src/worker/approval.ts'
import {
  type PassRequest,
  passWorker,
  prepareWorker,
  type WorkerRequest,
  zonesThatMoved,
} from '../../src/worker/authorize.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { errorText, operator, project, refusedLater } from './support.ts'

const SHELL =
  'toolsets: { shell: { rules: [{ pattern: ls, approval: preApproved }, { pattern: wc, approval: ask }, { pattern: rm, approval: blocked }] } }'
const file = (yaml: string) => `---\n${yaml}\n---\nDo it.\n`
const WORKER = file(`name: w\n${SHELL}`)

function request(cwd: string, more: Partial<WorkerRequest> & { readonly given?: GivenOptions } = {}): WorkerRequest {
  const { given = {}, ...rest } = more
  const grant = operator(given, { cwd })
  return {
    ...{ cwd, home: '', shippedDirectory: '', worker: 'w', grant, isProfileChosen: false },
    ...{ command: ['ls'], allowShellSyntax: false },
    ...rest,
  }
}
const prepared = async (request: WorkerRequest) => {
  const ready = await prepareWorker(request)
  if (ready.isBlocked) throw new Error(ready.verdict.why)
  return ready
}
const pass = async (request: Partial<PassRequest> & WorkerRequest) =>
  await passWorker({
    approval: 'prompt',
    memory: processMemory(),
    ask: async () => undefined,
    onDecided: () => undefined,
    ...request,
  })

describe('finding a worker', () => {
  const PLACES = `w.worker w.agent w.md workers/w.worker workers/w.agent workers/w.md workers/w/worker.worker
    .claude/agents/w.md .claude/skills/w/SKILL.md`
  test.each(PLACES.split(/\s+/))('by name in %s', async (file) => {
    const cwd = await project({ [file]: WORKER })
    const { worker, files } = await prepared(request(cwd))
    expect([worker.file, files[0]]).toEqual([file, path.join(cwd, file)])
  })

  test('by path, also outside the project', async () => {
    const [cwd, other] = [await temporaryDirectory(), await project({ 'x/w.worker': WORKER })]
    const { worker } = await prepared(request(cwd, { worker: path.join(other, 'x/w.worker') }))
    expect(worker.name).toBe('w')
  })

  test('among those that come with the program, last', async () => {
    const [cwd, shippedDirectory] = [await temporaryDirectory(), await project({ 'w.worker': WORKER })]
    expect((await prepared(request(cwd, { shippedDirectory }))).worker.file).toBe(
      path.join(shippedDirectory, 'w.worker'),
    )
  })

  test('a name that is not there names the nearest', async () => {
    const cwd = await project({ 'workers/reader.worker': WORKER })
    const error = await refusedLater(prepareWorker(request(cwd, { worker: 'raeder' })))
    expect([error.code, error.message]).toEqual([
      'WORKER_NOT_FOUND',
      `no worker "raeder" in ${cwd}. Did you mean "reader"?`,
    ])
  })

  test('the places that the search looks at before it are protected, too', async () => {
    const cwd = await project({ 'workers/w.agent': WORKER })
    const { policy } = await prepared(request(cwd))
    const names = ['workers/w.agent', 'w.worker', 'w.agent', 'w.md', 'workers/w.worker']
    expect(policy.protectFiles).toEqual(names.map((name) => path.join(cwd, name)))
  })

  test('a link inside the project is followed, and the file and the link are protected', async () => {
    const cwd = await project({ 'lib/real.worker': WORKER })
    await symlink('lib/real.worker', path.join(cwd, 'w.worker'))
    const { policy } = await prepared(request(cwd))
    expect(policy.protectFiles).toEqual([path.join(cwd, 'lib/real.worker'), path.join(cwd, 'w.worker')])
  })

  test.each(['w', './w.worker', 'workers/../w.worker'])('a link out of the project is refused (%s)', async (name) => {
    const [cwd, other] = [await temporaryDirectory(), await project({ 'w.worker': WORKER })]
    await symlink(path.join(other, 'w.worker'), path.join(cwd, 'w.worker'))
    await mkdir(path.join(cwd, 'workers'))
    const error = await refusedLater(prepareWorker(request(cwd, { worker: name })))
    expect(error.message).toMatch(/w\.worker: expected a file inside .*, got a link to "/)
  })

  test('a directory linked out of the project is refused', async () => {
    const [cwd, other] = [await temporaryDirectory(), await project({ 'w.worker': WORKER })]
    await symlink(other, path.join(cwd, 'workers'))
    expect((await refusedLater(prepareWorker(request(cwd)))).message).toMatch(/expected a file inside/)
  })

  const bytes = Buffer.from('---\n\xff\xfe', 'latin1')
  test.each<[why: string, make: (at: string) => Promise<unknown>]>([
    ['expected a regular file, got a directory', (at) => mkdir(at)],
    [
      'expected a file that can be read, got symbolic links that go in a circle',
      (at) => symlink(path.basename(at), at),
    ],
    ['expected UTF-8 text, got other bytes', (at) => writeFile(at, bytes)],
    ['expected at most 1048576 bytes, got more', (at) => writeFile(at, Buffer.alloc(1024 ** 2 + 1, 0x20))],
    ['expected a regular file, got something else', (at) => execa('mkfifo', [at])],
  ])('what cannot be a worker is told: %s', async (why, make) => {
    const cwd = await temporaryDirectory()
    await make(path.join(cwd, 'w.worker'))
    const error = await refusedLater(prepareWorker(request(cwd)))
    expect([error.code, error.message]).toEqual(['WORKER_INVALID', expect.stringContaining(why)])
  })

  test.skipIf(process.getuid?.() === 0)('a file that may not be read is told', async () => {
    const cwd = await project({ 'w.worker': WORKER })
    await chmod(path.join(cwd, 'w.worker'), 0)
    expect((await refusedLater(prepareWorker(request(cwd)))).message).toContain('permission denied (EACCES)')
  })

  test.each(['w\0x', 'w\u001b[2J', 'w\u200b', 'wеb', '', '../../../etc/passwd', 'a\nb'])(
    'the name %j finds nothing and does no harm',
    async (name) => {
      const cwd = await temporaryDirectory()
      const error = await refusedLater(prepareWorker(request(cwd, { worker: name })))
      expect(['WORKER_INVALID', 'WORKER_NOT_FOUND']).toContain(error.code)
      expect(error.message).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u200b]/)
    },
  )
})

describe('deciding about a command', () => {
  test.each<[string, readonly string[], RegExp]>([
    [`name: w\n${SHELL}`, ['rm', 'x'], /worker w may not run this command: w\.worker:3: .*rule "rm" says block/],
    [`name: w\n${SHELL}`, ['cat'], /no rule of the worker names this command/],
    ['name: w\ntoolsets: { filesystem: {} }', ['ls'], /it names no shell toolset/],
    ['name: w\ntools: []', ['ls'], /it names no shell toolset/],
    [
      'name: w\ntoolsets: { filesystem: {} }\nsandbox: { zones: [{ name: wanted, mode: rw }] }',
      ['ls'],
      /it names no shell toolset/,
    ],
  ])('%j does not run %j', async (yaml, command, why) => {
    const cwd = await project({ 'w.worker': file(yaml) })
    const error = await refusedLater(pass(request(cwd, { command })))
    expect([error.code, errorText(error)]).toEqual(['COMMAND_BLOCKED', expect.stringMatching(why)])
  })

  test('the text of -c is what the rules see, not the shell that runs it', async () => {
    const cwd = await project({ 'w.worker': WORKER })
    const run = (script: string) => prepareWorker(request(cwd, { command: ['/bin/sh', '-c', script], script }))
    expect((await run('ls -l')).isBlocked).toBe(false)
    expect((await run('ls; rm x')).isBlocked).toBe(true)
  })
})

describe('a worker in workshops', () => {
  const ASKER = file('name: w\ntools: Bash\nsandbox: { zones: [{ name: input }, { name: output, mode: rw }] }')
  const shop = (zones: string, rest = '') => `workshop:\n  name: s\n  sandbox: { zones: [${zones}] }\n${rest}`

  test('one worker runs in two workshops, each with its own directories', async () => {
    const one = shop('{ name: input, hostPath: ./a }, { name: output, mode: rw, hostPath: ./a }')
    const two = shop('{ name: input, mode: rw, hostPath: ./b }, { name: output, mode: tmpfs }')
    const cwd = await project({ 'w.worker': ASKER, 'a/x': '', 'b/x': '', 'one.yaml': one, 'two.yaml': two })
    const zonesIn = async (workshop: string) => {
      const { policy } = await prepared(request(cwd, { workshop }))
      return policy.zones.map(({ name, mode, hostPath = '' }) => `${name} ${mode} ${path.basename(hostPath)}`)
    }
    expect(await zonesIn('one.yaml')).toEqual(['input ro a', 'output rw a'])
    expect(await zonesIn('two.yaml')).toEqual(['input ro b', 'output tmpfs '])
  })

  test('a request that is granted only ro is refused with file, key, wanted and granted', async () => {
    const cwd = await project({
      'w.worker': ASKER,
      's.yaml': shop('{ name: input, hostPath: . }, { name: output, hostPath: . }'),
    })
    const error = await refusedLater(prepareWorker(request(cwd, { workshop: 's.yaml' })))
    expect([error.code, error.message]).toEqual([
      'POLICY_ESCALATION',
      'w.worker:4: sandbox.zones.1: wanted mode rw, granted ro by zone output (workshop s.yaml:3).',
    ])
  })

  test('several workers, each narrowed by itself', async () => {
    const shopText =
      'name: s\nsandbox: { zones: [{ name: d, hostPath: ., mode: rw }], resources: { memory: 300m } }\nworkers:\n  - { name: a, readonly: true }\n  - { name: b, resources: { memory: 100m } }\n'
    const cwd = await project({
      'a.worker': file('name: a\ntools: Bash'),
      'b.worker': file('name: b\ntools: Bash'),
      's.yaml': shopText,
    })
    const [a, b] = await Promise.all(
      ['a', 'b'].map(async (worker) => (await prepared(request(cwd, { worker, workshop: 's.yaml' }))).policy),
    )
    expect([a?.zones[0]?.mode, a?.resources.memory]).toEqual(['ro', 300 * 1024 ** 2])
    expect([b?.zones[0]?.mode, b?.resources.memory]).toEqual(['rw', 100 * 1024 ** 2])
  })

  test('a workshop cannot widen for a worker what it has not itself', async () => {
    const cwd = await project({
      'w.worker': WORKER,
      's.yaml':
        'name: s\nsandbox: { resources: { memory: 100m } }\nworkers: [{ name: w, resources: { memory: 200m } }]\n',
    })
    expect((await refusedLater(prepareWorker(request(cwd, { workshop: 's.yaml' })))).message).toContain(
      's.yaml:3: resources.memory: wanted 200MiB, granted 100MiB',
    )
  })

  test('a worker that the workshop does not list does not run there', async () => {
    const cwd = await project({ 'w.worker': WORKER, 's.yaml': 'name: s\nworkers: [v]\n' })
    expect((await refusedLater(prepareWorker(request(cwd, { workshop: 's.yaml' })))).message).toContain(
      'worker w does not work here, expected one of: v',
    )
  })

  test('paths of a workshop elsewhere are its own directory’s, and that directory may be used', async () => {
    const [cwd, other] = [
      await project({ 'w.worker': WORKER }),
      await project({ 'data/x': '', 's.yaml': shop('{ name: d, hostPath: ./data, mode: rw }') }),
    ]
    const { policy } = await prepared(request(cwd, { workshop: path.join(other, 's.yaml') }))
    expect(policy.zones[0]?.hostPath).toBe(path.join(other, 'data'))
  })

  test('a home directory is no project, so a workshop in it can show nothing of it', async () => {
    const [cwd, home] = [
      await project({ 'w.worker': WORKER }),
      await project({ '.ssh/key': '', 's.yaml': shop('{ name: d, hostPath: ./.ssh }') }),
    ]
    const error = await refusedLater(prepareWorker(request(cwd, { home, workshop: path.join(home, 's.yaml') })))
    expect(error.code).toBe('POLICY_ESCALATION')
  })

  test('a link in the project is judged by where it leads', async () => {
    const [cwd, other] = [
      await project({ 'w.worker': file('name: w\ntools: Bash\nsandbox: { zones: [{ name: d, hostPath: ./d }] }') }),
      await temporaryDirectory(),
    ]
    await symlink(other, path.join(cwd, 'd'))
    expect((await refusedLater(prepareWorker(request(cwd)))).message).toContain(
      `wanted the host path ${other} (ro), granted no zone that shows it`,
    )
  })

  test('a zone that is another directory by the time of the plan is noticed', async () => {
    const cwd = await project({
      'w.worker': file('name: w\ntools: Bash\nsandbox: { zones: [{ name: d, hostPath: ./d }] }'),
      'd/x': '',
    })
    const { policy } = await prepared(request(cwd))
    expect(zonesThatMoved(policy, [{ name: 'd', source: path.join(cwd, 'd') }])).toEqual([])
    expect(zonesThatMoved(policy, [{ name: 'd', source: '/etc' }])).toEqual(['d'])
  })
})
