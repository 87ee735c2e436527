import { existsSync } from 'node:fs'
import { readFile, symlink } from 'node:fs/promises'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { prepareWorker } from '../../src/worker/authorize.ts'
import { initProject } from '../../src/worker/init.ts'
import { checkWorkers, listWorkers, showWorker } from '../../src/worker/list-show-check.ts'
import { operator, project, refusedLater } from './support.ts'

const file = (yaml: string) => `---\n${yaml}\n---\nDo it.\n`
const request = (cwd: string) => ({
  cwd,
  home: '',
  shippedDirectory: '',
  grant: operator({}, { cwd }),
  isProfileChosen: false,
})
const checked = async (tree: string) => {
  const { data, lines, ok } = await checkWorkers({
    tree,
    home: '',
    grant: operator({}, { cwd: tree }),
    isProfileChosen: false,
  })
  return {
    files: data.files,
    ok,
    lines,
    found: data.findings.map(({ severity, code, message }) => `${severity} ${code} ${message}`),
  }
}

describe('check', () => {
  test('a tree without mistakes passes', async () => {
    const cwd = await project({
      'workers/a.worker': file('name: a\ntools: Bash\ndelegates-to: [b]'),
      'workers/b/worker.worker': file('name: b\ntoolsets: [shell_readonly]'),
      's.yaml': 'workshop: { name: s, workers: [a, b] }',
      'README.md': '# A page',
      'other.yaml': 'key: of another program',
    })
    const { files, found, ok } = await checked(cwd)
    expect(files.map(({ file: name, kind, ok: fine }) => [name, kind, fine])).toEqual([
      ['s.yaml', 'workshop', true],
      ['workers/a.worker', 'worker', true],
      ['workers/b/worker.worker', 'worker', true],
    ])
    expect([found, ok]).toEqual([[], true])
  })

  const delegating = (...pairs: readonly string[]) =>
    Object.fromEntries(pairs.map(([from, to]) => [`${from}.worker`, file(`name: ${from}\ndelegates-to: [${to}]`)]))
  const shop = (text: string) => ({ 's.yaml': `workshop: { name: s, ${text} }` })
  test.each<[title: string, files: Readonly<Record<string, string>>, line: string]>([
    [
      'a delegate that does not exist',
      { 'a.worker': file('name: reader\ndelegates-to: [raeder]') },
      'error UNKNOWN_DELEGATE a.worker:3: delegates-to: no worker is called "raeder". Did you mean "reader"?',
    ],
    [
      'a worker that delegates to itself',
      delegating('aa'),
      'error CYCLE a.worker:3: delegates-to: workers delegate in a circle: a -> a.',
    ],
    [
      'a circle',
      delegating('ab', 'bc', 'ca'),
      'error CYCLE c.worker:3: delegates-to: workers delegate in a circle: a -> b -> c -> a.',
    ],
    [
      'an escalation',
      { 'a.worker': file('name: a\nsandbox: { network: host }'), ...shop('') },
      'error ESCALATION a.worker:3: network: wanted host, granted none (built-in) (worker a in workshop s).',
    ],
    [
      'a workshop that wants too much',
      { 'a.worker': file('name: a'), 'b.worker': file('name: b'), ...shop('sandbox: { network: host }') },
      'error ESCALATION s.yaml:1: network: wanted host, granted none (built-in).',
    ],
    [
      'a rule that is never reached',
      { 'a.worker': file('name: a\ntools: Bash, Bash(ls)') },
      'warning UNREACHABLE_RULE a.worker:3: tools: rule "Bash(ls)" is never reached: "Bash" above it takes the same commands.',
    ],
    [
      'a worker that is not there',
      shop('workers: [a]'),
      'error UNKNOWN_WORKER s.yaml:1: workshop.workers.0: no worker is called "a".',
    ],
    [
      'a file that is no worker',
      { 'a.worker': 'no front matter' },
      'error INVALID a.worker:1: expected a first line that is exactly ---, got "no front matter".',
    ],
  ])('%s is told', async (_, files, line) => {
    const { found, ok } = await checked(await project(files))
    expect(found).toEqual([line])
    expect(ok).toBe(line.startsWith('warning'))
  })

  test('a wildcard and the agents of other programs are known', async () => {
    const { found } = await checked(
      await project({ 'a.md': file('name: a\ntools: Task(Explore)\nallow_workers: ["*"]') }),
    )
    expect(found).toEqual([])
  })
})

describe('list and show', () => {
  test('list names every worker, where it is and what it does, and what is wrong with it', async () => {
    const cwd = await project({ 'workers/a.worker': file('name: a\ndescription: Does it.'), 'b.worker': file('x: [') })
    const { data } = await listWorkers({ cwd, home: '', shippedDirectory: '' })
    expect(data).toMatchObject([
      { name: 'a', file: 'workers/a.worker', description: 'Does it.' },
      { name: 'b', file: 'b.worker', problem: expect.stringContaining('expected valid YAML') },
    ])
  })

  test('show prints a worker with its rules, and the policy protects the files in use', async () => {
    const rules = 'toolsets: { shell: { rules: [{ pattern: ls, approval: preApproved }] } }'
    const cwd = await project({
      'w.worker': file(`name: w\n${rules}\nsandbox: { zones: [{ name: d }] }\nresult_type: A`),
      's.yaml': 'workshop:\n  name: s\n  sandbox:\n    zones: [{ name: d, hostPath: ., mode: rw }]',
    })
    const { lines, policy } = await showWorker({ ...request(cwd), worker: 'w', workshop: 's.yaml' })
    expect(lines).toEqual([
      'worker     w (w.worker)',
      'workshop   s (s.yaml)',
      'tools      opt-in',
      'toolsets   shell',
      'rule       run   ls   (w.worker:3)',
      'rule       block everything else   (no default is written)',
      'io         result_type: A',
    ])
    expect(policy.zones).toMatchObject([{ name: 'd', mode: 'ro', hostPath: cwd }])
    expect(policy.protectFiles).toEqual(expect.arrayContaining([`${cwd}/w.worker`, `${cwd}/s.yaml`]))
  })
})

describe('init', () => {
  test('never overwrites, and follows no link', async () => {
    const cwd = await project({ 'workshop.yaml': 'mine' })
    await symlink('elsewhere', path.join(cwd, 'workers'))
    expect((await refusedLater(initProject(cwd))).code).toBe('SETUP_FAILED')
    expect(await readFile(path.join(cwd, 'workshop.yaml'), 'utf8')).toBe('mine')
    const other = await project({ 'workers/helper.worker': 'mine' })
    await symlink('nowhere', path.join(other, 'workshop.yaml'))
    expect(await initProject(other)).toEqual({
      written: [],
      kept: ['workshop.yaml', 'workers/helper.worker'],
    })
    expect(existsSync(path.join(other, 'nowhere'))).toBe(false)
  })
})

describe('shipped examples', () => {
  const SHIPPED = path.join(import.meta.dirname, '..', '..', 'workers')
  const prepared = async (worker: string, shop: string | undefined, command: readonly string[]) =>
    await prepareWorker({
      ...request(await project({ 'package.json': '{}' })),
      shippedDirectory: path.resolve(SHIPPED),
      worker,
      workshop: shop === undefined ? undefined : path.join(SHIPPED, `${shop}.workshop.yaml`),
      command,
      allowShellSyntax: false,
    })

  test('are without mistakes, alone and together', async () => {
    const { found, files } = await checked(path.resolve(SHIPPED))
    expect([found, files.map(({ name }) => name)]).toEqual([
      [],
      ['code-reviewer', 'data-cruncher', 'data', 'everyday', 'test-runner'],
    ])
  })

  test.each<[string, string | undefined, readonly string[], string]>([
    ['code-reviewer', undefined, ['git', 'diff', 'HEAD'], 'run'],
    ['code-reviewer', 'everyday', ['rm', '-rf', '.'], 'block'],
    ['test-runner', 'everyday', ['npm', 'test'], 'run'],
    ['test-runner', undefined, ['make'], 'ask'],
    ['data-cruncher', 'data', ['cat', '/input/sales.csv'], 'run'],
  ])('%s in %s may %j: %s', async (worker, shop, command, decision) => {
    const ready = await prepared(worker, shop, command)
    expect([ready.verdict.decision, ready.warnings]).toEqual([decision, []])
  })
})
