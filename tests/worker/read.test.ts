import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { checkLayer } from '../../src/policy/validate-layer.ts'
import { kindOf, readProfileZones, readWorker, readWorkshop } from '../../src/worker/read.ts'
import type { Worker, ZoneRequest } from '../../src/worker/worker.ts'
import { refused } from '../support/refused.ts'
import { errorText, HOME, sandbox, worker, workshop } from './support.ts'

const zoneLine = ({ name, target, mode, hostPath, request }: ZoneRequest) =>
  [name, target, mode, hostPath ?? (request === true ? 'requested' : 'none')].join(' ')
const codes = ({ warnings }: Pick<Worker, 'warnings'>) => warnings.map(({ code }) => code)

describe('every spelling of zones means the same', () => {
  const IN_OUT = 'input /input ro /project/data, output /output rw /project/results'
  test.each<[title: string, yaml: string, zones: string]>([
    ['a list', 'zones: [{ name: input, hostPath: ./data }, { name: output, mode: rw, hostPath: ./results }]', IN_OUT],
    ['paths, a root', 'paths: { input: { root: ./data, mode: ro }, output: { root: ./results, mode: rw } }', IN_OUT],
    ['zones by name', 'zones: { input: { path: ./data }, output: { path: ./results, mode: rw } }', IN_OUT],
    ['mounts as text', 'mounts: ["./data:/input:ro", "./results:/output:rw"]', IN_OUT],
    [
      'mounts as source and target',
      'mounts: [{ source: ./data, target: /input, readonly: true }, { source: ./results, target: /output, readonly: false }]',
      IN_OUT,
    ],
    [
      'mounts as host_path and mount_point',
      'mounts: [{ host_path: ./data, mount_point: /input, mode: ro }, { host_path: ./results, mount_point: /output, mode: rw }]',
      IN_OUT,
    ],
    ['no mode is read-only', 'zones: [{ name: data, hostPath: ./data }]', 'data /data ro /project/data'],
    ['no host path is a request', 'zones: [{ name: data, mode: rw }]', 'data /data rw requested'],
    ['tmpfs is no request', 'zones: [{ name: scratch, mode: tmpfs, size: 5m }]', 'scratch /scratch tmpfs none'],
    ['a root alone is the workspace', 'root: ".", readonly: true', 'workspace /workspace ro /project'],
    ['a root that may be changed', 'root: ./src, readonly: false', 'workspace /workspace rw /project/src'],
    ['a root is what paths are relative to', 'root: ./base, zones: { a: { path: ./x } }', 'a /a ro /project/base/x'],
    ['sandboxed is below .sandbox', 'mode: sandboxed, zones: { a: { path: ./x } }', 'a /a ro /project/.sandbox/x'],
    ['direct changes nothing', 'mode: direct, zones: { a: { path: ./x } }', 'a /a ro /project/x'],
    ['the home directory', 'zones: { a: { path: ~/x } }', `a /a ro ${HOME}/x`],
    [
      'mounts of one name are told apart by their whole target',
      'mounts: ["./a:/one/src:ro", "./b:/two/src:ro"]',
      'one-src /one/src ro /project/a, two-src /two/src ro /project/b',
    ],
  ])('%s', (_title, yaml, zones) => {
    expect(sandbox(`{ ${yaml} }`).zones.map(zoneLine).join(', ')).toBe(zones)
  })

  test('the older section sandboxes is zones too, with rules that are not enforced', () => {
    const read = worker('name: w\nsandboxes:\n  input: { path: ./input, mode: ro, max_bytes: 10 }')
    expect(read.sandbox?.zones.map(zoneLine)).toEqual(['input /input ro /project/input'])
    expect(read.sandbox?.zones[0]?.advisory).toEqual({ max_bytes: 10 })
    expect(codes(read)).toEqual(['W_ADVISORY'])
  })

  test('a mount without mode is read-only and says that docker would do otherwise', () => {
    const read = worker('name: w\nsandbox: { mounts: ["./src:/workspace/src"] }')
    expect(read.sandbox?.zones.map(zoneLine)).toEqual(['src /workspace/src ro /project/src'])
    expect(read.warnings[0]).toMatchObject({ code: 'W_MODE', file: 'w.worker', line: 3, key: 'sandbox.mounts.0' })
  })

  test('restrict and readonly are kept as wishes', () => {
    const request = sandbox('{ restrict: /sub/, readonly: true }')
    expect([request.restrict?.value, request.readonly?.value]).toEqual(['/sub', true])
  })
})

describe('everything else of a sandbox is read as a policy', () => {
  const parsed = (yaml: string) => checkLayer(sandbox(yaml).layer).parsed
  test.each<[string, string | undefined, readonly string[]]>([
    ['no', 'none', []],
    ['{ mode: restricted, allow: [a.example] }', 'restricted', ['a.example']],
    ['true', 'host', []],
  ])('network: %s is %s', (yaml, mode, allow) => {
    expect(parsed(`{ network: ${yaml} }`).network).toMatchObject({ mode, allow })
  })

  test.each(['docker', 'process', 'namespace', 'auto'])('isolation: %s is the backend', (word) => {
    expect(parsed(`{ isolation: ${word} }`).backend?.backend).toBe(word)
  })
})

describe('tools', () => {
  const rules = ({ shell }: Worker) =>
    shell?.rules.map(({ tokens, match, decision }) => `${decision} ${match} ${tokens.join(' ')}`).join(', ') ?? 'none'
  const toolset = (...rules: readonly string[]) => `toolsets: { shell: { rules: [{ ${rules.join(' }, { ')} }] } }`
  const words = ['pattern: a, approval: preApproved', 'pattern: b, approval: ask', 'pattern: c, approval: blocked']
  test.each<[title: string, yaml: string, rules: string]>([
    ['a comma list', 'allowed-tools: Read, Grep, Bash(git diff:*)', 'run prefix git diff'],
    ['a space list', 'allowed-tools: Read Bash(git log *)', 'run prefix git log'],
    ['a list', 'allowed-tools: [Read, "Bash(npm run test)"]', 'run exact npm run test'],
    ['Bash alone is any command', 'tools: Read, Bash', 'run prefix '],
    ['taken away', 'tools: Bash\ndisallowedTools: Bash(git push:*)', 'block prefix git push, run prefix '],
    ['no shell among the tools', 'tools: Read, Grep', 'none'],
    ['an empty list is no tools', 'tools: []', 'none'],
    ['shell taken away as a whole', 'tools: Bash\ndisallowed-tools: Bash', 'none'],
    ['approval_required', toolset('pattern: a, approval_required: false', 'pattern: b'), 'run prefix a, ask prefix b'],
    ['approval by word', toolset(...words), 'run prefix a, ask prefix b, block prefix c'],
    ['not allowed', 'shell_rules: [{ pattern: rm, allowed: false, approval_required: false }]', 'block prefix rm'],
    ['a star at the end', toolset('pattern: "git *", approval: ask'), 'ask prefix git'],
    ['no shell toolset', 'toolsets: { filesystem: {} }', 'none'],
    ['an old rule', 'toolsets: [shell_readonly]\ntool_rules: { shell: { allowed: false } }', 'none'],
  ])('%s', (_title, yaml, expected) => {
    expect(rules(worker(`name: w\n${yaml}`, 'w.md'))).toBe(expected)
  })

  test('a default of not allowed blocks, whatever it says about approval', () => {
    const read = worker('name: w\nshell_rules: []\nshell_default: { allowed: false, approval_required: true }')
    expect(read.shell?.default?.value).toBe('block')
  })

  test.each<[string, readonly string[]]>([
    ['delegates-to: a, b', ['a', 'b']],
    ['allow_workers: ["*"]', ['*']],
    ['toolsets: { delegation: { allow_workers: [a] } }', ['a']],
    ['toolsets: { workers: { allowed_workers: [a, b] } }', ['a', 'b']],
    ['tools: Read, Task(a), Task(b)', ['a', 'b']],
    ['allow_workers: [a]\ndelegates-to: [a, c]', ['a', 'c']],
  ])('%s names delegates', (yaml, names) => {
    expect(worker(`name: w\n${yaml}`).delegates.map(({ value }) => value)).toEqual(names)
  })

  test('references to schemas are kept as they are', () => {
    expect(worker('name: w\nresult_type: A.B\nschema_in_ref: x.json').io).toEqual({
      result_type: 'A.B',
      schema_in_ref: 'x.json',
    })
  })
})

describe('workshops', () => {
  const BODY =
    'name: bench\nisolation: docker\ncontainer: { image: "alpine:3", network: none, mounts: ["./src:/src:ro"], resources: { memory: 1g } }\nworkers: [a, b]'
  test.each([
    ['un-nested', BODY],
    ['nested', `workshop:\n  ${BODY.replaceAll('\n', '\n  ')}`],
  ])('%s keys are the same workshop', (_, yaml) => {
    const read = workshop(yaml)
    expect(read.workers?.map(({ name }) => name)).toEqual(['a', 'b'])
    expect(read.sandbox?.zones.map(zoneLine)).toEqual(['src /src ro /project/src'])
    expect(checkLayer(read.sandbox!.layer).parsed).toMatchObject({
      backend: { backend: 'docker' },
      image: 'alpine:3',
      network: { mode: 'none' },
    })
  })

  test('each worker can be narrowed, in a list or by name', () => {
    const listed = workshop('name: s\nworkers:\n  - { name: a, readonly: true }\n  - b')
    const named = workshop('name: s\nworkers:\n  a: { readonly: true }\n  b:')
    for (const read of [listed, named]) {
      expect(read.workers?.map(({ name, narrowing }) => [name, narrowing?.readonly?.value])).toEqual([
        ['a', true],
        ['b', undefined],
      ])
    }
  })
})

describe('bad input is one error that names file, line, key, expected and got', () => {
  /** `...` matches any text; `\n` begins a line. */
  const WRONG = String.raw`
    an unknown key in a sandbox | sandbox:\n  netwrk: none | 4: sandbox.netwrk: expected one of ...Did you mean "network"?
    an unknown key in a zone | zones:\n    - { name: a, pth: x } | 5: sandbox.zones.0.pth: expected one of ...got the unknown key "pth"...
    a mode that is none | zones:\n    a: { mode: wr } | 5: sandbox.zones.a.mode: expected ro, cow, rw or tmpfs, got "wr" (string)...
    an unknown rule key | shell_rules:\n  - { pattern: a, patern: b } | 4: shell_rules.0.patern: expected ...Did you mean "pattern"?
    an odd approval | shell_rules:\n  - { pattern: a, approval_required: no } | 4: shell_rules.0.approval_required: expected true or false, got "no"...
    two answers | shell_rules:\n  - { pattern: a, approval: preApproved, approval_required: true } | 4: shell_rules.0: expected ... to agree...
    a blocked command that runs | shell_rules:\n  - { pattern: a, approval: preApproved, allowed: false } | 4: shell_rules.0: expected allowed: false and approval to agree, got approval: preApproved.
    a quote that is not closed | shell_rules:\n  - { pattern: "a 'b", approval: ask } | 4: shell_rules.0.pattern: expected a closing '...
    a look-alike in a zone name | zones:\n    - name: dаta | 5: sandbox.zones.0.name: ... with U+0430.
    a look-alike in the name of a mapped zone | paths:\n    dаta: { root: . } | 5: sandbox.paths.dаta: expected a zone name ... with U+0430.
    a zero-width space in a zone name | zones: [{ name: "da\u200bta" }] | 4: sandbox.zones.0.name: ...with U+200B.
    two host paths | zones: [{ name: a, hostPath: x, path: y }] | 4: sandbox.zones.0: expected one hostPath, got hostPath and path.
    two zones of a name | zones: [{ name: a, path: x }]\n  paths: { a: { root: y } } | 5: sandbox.paths.a: expected a name and a target of its own...
    a mode and readonly that disagree | zones: [{ name: a, mode: rw, readonly: true }] | 4: sandbox.zones.0: expected a mode and readonly that agree...
    a mount that is none | mounts: ["./a"] | 4: sandbox.mounts.0: expected SOURCE:TARGET...
    words of docker we do not have | mounts: ["./a:/a:z"] | 4: sandbox.mounts.0: expected SOURCE:TARGET...
    a sandbox that is a list | sandbox: [a] | 3: sandbox: expected a mapping, got a list...
    isolation and another backend | isolation: docker\n  backend: namespace | 4: sandbox.isolation: expected namespace, which backend says, got docker...
    tools that are no names | tools: "Read, $(x)" | 3: tools: expected tools such as...
    a delegate that is a path | allow_workers: ["../x"] | 3: allow_workers: expected names of workers...`
  const atTop = /^(?:sandbox|shell_rules|tools|allow_workers):/
  test.each(
    WRONG.trim()
      .split('\n')
      .map((row) => row.split(' | ').map((cell) => cell.trim())),
  )('%s', (_title, yaml = '', problem = '') => {
    const keys = yaml.replaceAll('\\n', '\n')
    const text = atTop.test(keys) ? keys : `sandbox:\n  ${keys}`
    const error = refused(() => worker(`name: w\n${text}`))
    const [, line] = /^w\.worker:(.*)$/s.exec(errorText(error)) ?? []
    const parts = problem.split('...').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    expect([error.code, line]).toEqual([
      'WORKER_INVALID',
      expect.stringMatching(new RegExp(`^${parts.join('.*')}$`, 's')),
    ])
  })

  test.each<[title: string, yaml: string, problem: RegExp]>([
    ['no name', 'description: only', /^w\.worker: name: expected the name of the worker, got nothing\.$/],
    ['a look-alike', 'name: rеa', /^w\.worker:2: name: expected a name of .*, got "rеa" \(string\) with U\+0435\.$/],
    ['a NUL in it', 'name: "a\\0b"', /^w\.worker:2: name: .* with U\+0000\.$/],
  ])('the name of a worker: %s', (_title, yaml, problem) => {
    expect(errorText(refused(() => worker(yaml)))).toMatch(problem)
  })

  test('an unknown key is a warning in front matter, and names its place in the sandbox where it has one', () => {
    const read = worker('name: w\nmood: good\nnetwork: none')
    expect(read.warnings.map(({ code, line, message }) => [code, line, message])).toEqual([
      ['W_UNKNOWN_KEY', 3, expect.stringContaining('"mood"')],
      ['W_UNKNOWN_KEY', 4, expect.stringContaining('Did you mean sandbox.network?')],
    ])
  })

  test('an unknown key is an error in a workshop', () => {
    expect(errorText(refused(() => workshop('workshop:\n  name: s\n  wrkers: [a]')))).toMatch(
      /^shop\.yaml:3: workshop\.wrkers: expected one of .*got the unknown key "wrkers"\. Did you mean "workers"\?$/,
    )
  })

  test('every mistake of a file is told at once', () => {
    const error = refused(() => worker('name: w\nmodel: [a]\nsandbox: { netwrk: none, resources: { cpu: none-such } }'))
    expect(error.problems).toHaveLength(3)
  })

  test.each([
    [
      'container and sandbox say the same key',
      'name: s\ncontainer: { network: none }\nsandbox: { network: none }',
      /expected network in one section/,
    ],
    ['a worker twice', 'name: s\nworkers: [a, a]', /expected every worker once/],
    ['a workshop without name', 'workers: [a]', /shop\.yaml: ?(.*)name: expected/],
  ])('%s', (_, yaml, line) => {
    expect(errorText(refused(() => workshop(yaml)))).toMatch(line)
  })
})

const sourceOf = (directory: string, file: string) => ({
  ...{ file, directory, home: HOME, text: readFileSync(path.join(directory, file), 'utf8') },
})

/** A file as it is understood, in one line. */
function verdict(directory: string, file: string): string {
  const source = sourceOf(directory, file)
  try {
    const kind = kindOf(source)
    if (kind !== 'worker') {
      const read = kind === 'workshop' ? readWorkshop(source) : readProfileZones({ ...source, name: 'zones' })
      return `${kind} ${read.sandbox?.zones.map(({ name, mode }) => `${name} ${mode}`).join(', ') ?? ''}`
    }
    const { name, toolModel, sandbox: request, shell, delegates, model } = readWorker(source)
    const zones = (request?.zones ?? []).map(
      ({ name: zone, mode, request }) => `${zone} ${mode}${request === true ? '?' : ''}`,
    )
    return [
      name,
      toolModel,
      `zones(${zones.join(' ')})${request?.restrict === undefined ? '' : `in ${request.restrict.value}`}`,
      shell === null ? 'no shell' : `${shell.rules.length} rules else ${shell.default?.value ?? 'block'}`,
      `delegates(${delegates.map(({ value }) => value).join(' ')})`,
      model ?? '-',
      codes(readWorker(source)).join(' ') || '-',
    ].join(' | ')
  } catch (error) {
    return errorText(error as never)
  }
}

const FIXTURES = path.join(import.meta.dirname, 'fixtures')
const FIXTURE_VERDICTS: Readonly<Record<string, string>> = {
  'era-1-save.worker': 'log_keeper | opt-in | zones(log rw) | no shell | delegates() | - | W_ADVISORY',
  'era-2-toolsets.worker': 'counter | opt-in | zones() | 2 rules else block | delegates(log_keeper) | - | -',
  'era-3.agent': 'looker | opt-in | zones() | 13 rules else block | delegates() | - | -',
  'legacy.yaml':
    'old_hand | opt-in | zones(input ro output rw) | no shell | delegates(looker) | - | W_LEGACY W_ADVISORY W_ADVISORY',
  'request.worker': 'asker | opt-in | zones(scratch rw?) | no shell | delegates() | - | W_ADVISORY',
  'subagent.md': 'guard | listed | zones() | 1 rules else block | delegates() | - | W_LENIENT',
  'skill-without-tools.md': 'helper | inherit | zones() | 0 rules else ask | delegates() | - | W_INHERIT',
  'no-tools.md': 'thinker | listed | zones() | no shell | delegates() | - | -',
  'command.md': 'command.md: name: expected the name of the worker, got nothing.',
  'zones-only.yaml': 'profile input ro, output rw',
}
test.each(readdirSync(FIXTURES))('a file of another era is understood: %s', (file) => {
  expect(verdict(FIXTURES, file)).toBe(FIXTURE_VERDICTS[file])
})

test('a file without name passes under its file name when the reader is lax', () => {
  const read = readWorker({ ...sourceOf(FIXTURES, 'command.md'), fallbackName: 'command' })
  expect([read.name, codes(read)]).toEqual(['command', ['W_NAME']])
})
