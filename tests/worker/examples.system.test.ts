/** The shipped workers in real sandboxes, and that rules are comfort: without any, the walls are the same. */
import { existsSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { flagLayer, type GivenOptions } from '../../src/policy/option-layer.ts'
import { exec } from '../../src/run/exec.ts'
import { type Answer, processMemory } from '../../src/worker/approval.ts'
import { narrowByWorker } from '../../src/worker/authorize.ts'
import { project } from './support.ts'

const SHIPPED = path.join(import.meta.dirname, '..', '..', 'workers')
const file = (yaml: string) => `---\n${yaml}\n---\nDo it.\n`

interface Run {
  readonly worker: string
  readonly workshop?: string
  readonly given?: GivenOptions
  readonly reply?: Answer
  readonly onQuestion?: (text: string) => void
}

function run(cwd: string, command: readonly string[], { worker, workshop, given = {}, reply, onQuestion }: Run) {
  const narrow = narrowByWorker({
    worker,
    workshop: workshop === undefined ? undefined : path.join(SHIPPED, `${workshop}.workshop.yaml`),
    shippedDirectory: SHIPPED,
    isProfileChosen: false,
    allowShellSyntax: false,
    approval: 'prompt',
    memory: processMemory(),
    ask: async (text) => {
      onQuestion?.(text)
      return reply
    },
    onDecided: () => undefined,
  })
  return exec({
    command,
    cwd,
    layers: [flagLayer(given, cwd)],
    mode: 'capture',
    narrow,
    env: { PATH: process.env['PATH'] },
  })
}

describe('shipped workers', () => {
  test('the reviewer reads the project and can change nothing, though the workshop lets others', async () => {
    const cwd = await project({ 'a.txt': 'one\ntwo\n' })
    const read = await run(cwd, ['wc', '-l', 'a.txt'], { worker: 'code-reviewer', workshop: 'everyday' })
    expect([read.exitCode, read.stdout.trim()]).toEqual([0, '2 a.txt'])
    const wrote = await run(cwd, ['git', 'diff', '--no-index', '--output=made', '/dev/null', 'a.txt'], {
      worker: 'code-reviewer',
      workshop: 'everyday',
    })
    expect([wrote.exitCode === 0, existsSync(path.join(cwd, 'made'))]).toEqual([false, false])
  })
})

describe('without rules the walls are the same', () => {
  const FREE = { 'w.worker': file('name: w\ntools: Bash') }

  test('a worker that may run anything reads nothing beyond the zones, changes nothing and has no network', async () => {
    const [cwd, other] = [await project(FREE), await project({ secret: 'planted' })]
    const script = `cat "${other}/secret"; echo x > made; tail -n +3 /proc/net/dev | cut -d: -f1`
    const held = await run(cwd, ['/bin/sh', '-c', script], { worker: 'w' })
    expect([held.stdout.trim(), existsSync(path.join(cwd, 'made'))]).toEqual(['lo', false])
    const shown = await run(cwd, ['/bin/sh', '-c', script], { worker: 'w', given: { ro: [other], rw: ['.'] } })
    expect([shown.stdout.includes('planted'), existsSync(path.join(cwd, 'made'))]).toEqual([true, true])
  })
})

test('a person is asked once, also when a directory has to be made first', async () => {
  const cwd = await project({
    'w.worker': file(
      'name: w\nshell_default: ask\nsandbox: { zones: [{ name: new, mode: rw, hostPath: ./new, create: true }] }',
    ),
  })
  const questions: string[] = []
  const { exitCode } = await run(cwd, ['touch', '/new/x'], {
    worker: 'w',
    given: { rw: ['.'] },
    reply: 'yes',
    onQuestion: (text) => questions.push(text),
  })
  expect([exitCode, questions.length, existsSync(path.join(cwd, 'new/x'))]).toEqual([0, 1, true])
})
