import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { observeCgroup } from '../../src/cgroup/ladder.ts'
import { SandboxError } from '../../src/error.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { becoming, PLAIN_ID } from '../support/users.ts'
import { newGroup } from './groups.ts'

const uid = process.getuid?.() ?? 0
const childrenOf = (group: string): readonly string[] =>
  readdirSync(group, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []))

async function refusalOf(cgroupParent: string): Promise<SandboxError> {
  const answer = await observeCgroup({ uid, cgroupParent }).catch((error: unknown) => error)
  if (answer instanceof SandboxError) return answer
  throw new Error(`expected a refusal of ${cgroupParent}, got ${JSON.stringify(answer)}`)
}

describe('a cgroup parent that cannot hold runs is refused', () => {
  test.each([
    ['a relative path', async () => 'sys/fs/cgroup', 'relative'],
    ['a path that does not exist', async () => '/sys/fs/cgroup/no/such/group', 'ENOENT'],
    ['a file', async () => join(await temporaryDirectory(), '../../etc/passwd'), 'is not a directory'],
    ['a directory of another file system', () => temporaryDirectory(), 'is not in a cgroup v2 file system'],
  ])('%s', async (_, directory, why) => {
    const refusal = await refusalOf(await directory())
    expect(refusal.code).toBe('POLICY_INVALID')
    expect(refusal.message).toContain(why)
    expect(refusal.hint).not.toBe('')
  })
})

const versionOne = '/sys/fs/cgroup/memory'
test.runIf(existsSync(join(versionOne, 'tasks')))('a cgroup of version 1 is refused as a parent', async () => {
  expect((await refusalOf(versionOne)).message).toContain('version 1')
})

describeWith('root', 'on the cgroup v2 tree of this host', () => {
  test('an empty group is taken as a parent and left as it was', async () => {
    const group = newGroup()
    const fact = await observeCgroup({ uid, cgroupParent: group })
    expect(fact).toMatchObject({ rung: 'parent', parent: group })
    expect(childrenOf(group)).toEqual([])
  })

  test('a group with a process in it is refused as a parent, and nothing is created', async () => {
    const group = newGroup()
    const sleeper = execa('sleep', ['60'], { reject: false })
    await execa('sh', ['-c', `echo ${sleeper.pid} > ${group}/cgroup.procs`])
    const refusal = await refusalOf(group)
    expect(refusal.message).toContain(`has 1 processes in it (${sleeper.pid})`)
    expect(refusal.hint).toContain(`mkdir ${group}/leaf`)
    expect(childrenOf(group)).toEqual([])
  })

  test('the observed rung is one that was really tried: a group can be made there', async () => {
    const fact = await observeCgroup({ uid })
    const parent = fact.parent
    if (parent === undefined) throw new Error(`expected a place on the host's tree, got ${JSON.stringify(fact)}`)
    const probe = join(parent, 'llm-do-test-probe')
    mkdirSync(probe)
    rmdirSync(probe)
    expect(childrenOf(parent).filter((name) => name.startsWith('llm-do-probe'))).toEqual([])
  })

  test('without all three controllers it says why', async () => {
    const fact = await observeCgroup({ uid })
    const complete = ['memory', 'pids', 'cpu'].every((name) => fact.controllers.includes(name))
    expect(fact.lacking === '').toBe(complete)
  })
})

/** observeCgroup in a process of its own, as a plain user, standing in `own`. */
async function observeAsPlain(own: string, cgroupParent?: string): Promise<Record<string, unknown>> {
  const directory = await temporaryDirectory({ mode: 0o755 })
  const file = join(directory, 'observe.mjs')
  const inputs = JSON.stringify({ uid: PLAIN_ID, ...(cgroupParent === undefined ? {} : { cgroupParent }) })
  await build({
    stdin: {
      contents: `import { observeCgroup } from './src/cgroup/ladder.ts'
        observeCgroup(${inputs}).then((fact) => console.log(JSON.stringify(fact)), ({ code, message, hint }) => console.log(JSON.stringify({ code, message, hint })))`,
      resolveDir: join(import.meta.dirname, '../..'),
      loader: 'ts',
    },
    bundle: true,
    platform: 'node',
    format: 'esm',
    outfile: file,
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
    logLevel: 'silent',
  })
  const words = [...becoming('plain'), process.execPath, file]
  const ended = await execa('sh', ['-c', `echo 0 > "$1/cgroup.procs" && shift && exec "$@"`, 'sh', own, ...words])
  return JSON.parse(ended.stdout) as Record<string, unknown>
}

function delegate(group: string): void {
  for (const file of ['', 'cgroup.procs', 'cgroup.subtree_control', 'cgroup.threads'])
    chownSync(join(group, file), PLAIN_ID, PLAIN_ID)
}

describeWith(['root', 'plain-user'], 'a plain user', () => {
  test('gets the accounting rung, or better, in a group that was given away by chown', async () => {
    const group = newGroup()
    delegate(group)
    const fact = await observeAsPlain(group)
    expect(fact.parent).toBe(group)
    expect(['accounting', 'delegated']).toContain(fact.rung)
    expect(childrenOf(group)).toEqual(['llm-do.callers'])
    expect(statSync(join(group, 'llm-do.callers')).uid).toBe(PLAIN_ID)
  })

  test('gets no group where nothing was given away, and is told what would give it one with controllers', async () => {
    const fact = await observeAsPlain(newGroup())
    expect(fact).toMatchObject({ rung: 'none', controllers: [] })
    expect(fact.lacking).toMatch(/cannot be written \(EACCES\)/)
    // A group that was given away holds no limit while version 1 has the controllers: that comes first then.
    const isFree = /^(memory|pids|cpu)\t0\t/m.test(readFileSync('/proc/cgroups', 'utf8'))
    expect(fact.fix).toMatch(isFree ? /chown/ : /cgroup_no_v1=all/)
  })

  test('is refused a parent that is not writable', async () => {
    const refusal = await observeAsPlain(newGroup(), newGroup())
    expect(refusal.code).toBe('POLICY_INVALID')
    expect(refusal.message).toContain('cannot be written (EACCES)')
  })

  test('is refused a parent outside the part of the tree where it stands', async () => {
    const [own, elsewhere] = [newGroup(), newGroup()]
    delegate(elsewhere)
    const refusal = await observeAsPlain(own, elsewhere)
    expect(refusal.message).toContain('no process may be moved')
    expect(refusal.hint).toContain('systemd-run --user --scope')
    expect(childrenOf(elsewhere)).toEqual([])
  })
})
