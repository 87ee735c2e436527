import { spawnSync } from 'node:child_process'
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { beforeAll, describe, expect, test } from 'vitest'
import { processQuestions } from '../../src/backends/namespace/probe-host.ts'
import { prepareGroup } from '../../src/cgroup/group.ts'
import { observeCgroup } from '../../src/cgroup/ladder.ts'
import { isSystemdRunning } from '../../src/cgroup/systemd.ts'
import { SandboxError } from '../../src/error.ts'
import { identitiesOf } from '../../src/host/paths.ts'
import { bundle } from '../support/bundle.ts'
import { runCli } from '../support/cli.ts'
import { newDirectory, temporaryDirectory } from '../support/directory.ts'
import { runPart } from '../support/host-part.ts'
import { kernelThat } from '../support/kernel.ts'
import { describeWith } from '../support/needs.ts'
import { becoming, PLAIN_ID } from '../support/users.ts'
import { newGroup } from './groups.ts'

const uid = process.getuid?.() ?? 0
const childrenOf = (group: string): readonly string[] =>
  readdirSync(group, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []))

async function refusalOf(cgroupParent: string): Promise<SandboxError> {
  const observed = await observeCgroup({ uid, cgroupParent, observe: identitiesOf }).catch((error: unknown) => error)
  if (observed instanceof SandboxError) return observed
  throw new Error(`expected a refusal of ${cgroupParent}, got ${JSON.stringify(observed)}`)
}

describe('a cgroup parent that cannot hold runs is refused', () => {
  test.each([
    ['a relative path', async () => 'sys/fs/cgroup', 'relative'],
    ['a path that does not exist', async () => '/sys/fs/cgroup/no/such/group', 'ENOENT'],
    ['a file', async () => '/etc/passwd', 'is not a directory'],
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
    const fact = await observeCgroup({ uid, cgroupParent: group, observe: identitiesOf })
    expect(fact).toMatchObject({ rung: 'parent', parent: group })
    expect(childrenOf(group)).toEqual([])
    // Files that would exist if the kernel gave it more.
    const missing = ['memory', 'pids', 'cpu'].filter((name) => !fact.controllers.includes(name))
    const seen = Object.fromEntries(missing.map((name) => [join(group, `${name}.max`), 'missing']))
    expect(fact.seen).toEqual(missing.length === 0 ? undefined : seen)
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

  test('who was killed while it tried a place leaves a group that the next one removes, but not that of a living one', async () => {
    const group = newGroup()
    const dead = spawnSync('true').pid
    for (const maker of [dead, process.pid]) mkdirSync(join(group, `llm-do-probe-${maker}-aBcDeF`))
    await observeCgroup({ uid, cgroupParent: group, observe: identitiesOf })
    expect(childrenOf(group)).toEqual([`llm-do-probe-${process.pid}-aBcDeF`])
  })

  test('a group that another probe takes away says nothing of the next look', async () => {
    const group = newGroup()
    const refusing = (isRemoved: boolean) => async (probe: string) => {
      if (isRemoved) rmdirSync(probe)
      return { why: 'no such file', isPassing: false }
    }
    const tryGroup = async (isRemoved: boolean) => await prepareGroup(group, refusing(isRemoved))
    expect(await tryGroup(true)).toMatchObject({ why: expect.stringContaining('no such file'), isPassing: true })
    expect(await tryGroup(false)).toMatchObject({ isPassing: false })
    expect(childrenOf(group)).toEqual([])
  })
})

/** Starts what follows in a group, before it becomes another user. */
const processIn = (group: string): readonly string[] => {
  const script = 'echo 0 > "$1/cgroup.procs" && shift && exec "$@"'
  return ['sh', '-c', script, 'sh', group]
}

/** observeCgroup in a new process, as a plain user, standing in `own`. */
async function observeAsPlain(
  own: string,
  { cgroupParent, kernel = [] }: { readonly cgroupParent?: string; readonly kernel?: readonly string[] } = {},
): Promise<Record<string, unknown>> {
  const inputs = JSON.stringify({ uid: PLAIN_ID, ...(cgroupParent === undefined ? {} : { cgroupParent }) })
  const [file = '', ...words] = [...processIn(own), ...becoming('plain'), ...kernel, process.execPath]
  const ended = await execa(file, [...words, observer.file, inputs])
  return JSON.parse(ended.stdout) as Record<string, unknown>
}

const observer = { file: '' }

function delegate(group: string): void {
  for (const file of ['', 'cgroup.procs', 'cgroup.subtree_control', 'cgroup.threads'])
    chownSync(join(group, file), PLAIN_ID, PLAIN_ID)
}

describeWith(['root', 'plain-user'], 'a plain user', () => {
  beforeAll(async () => {
    const { path, remove } = await newDirectory({ mode: 0o755 })
    observer.file = await bundle(join(import.meta.dirname, '../programs/observe-cgroup.ts'), path)
    return remove
  })

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
    const group = newGroup()
    const fact = await observeAsPlain(group)
    expect(fact).toMatchObject({ rung: 'none', controllers: [], seen: { [group]: 'as it was' } })
    expect(fact.lacking).toMatch(/cannot be written \(EACCES\)/)
    // A group that was given away holds no limit while version 1 has the controllers: that comes first then.
    const isFree = /^(memory|pids|cpu)\t0\t/m.test(readFileSync('/proc/cgroups', 'utf8'))
    expect(fact.fix).toMatch(isFree ? /chown/ : /cgroup_no_v1=all/)
  })

  test('gets no group that cannot be tried this moment, which says nothing of the next', async () => {
    const group = newGroup()
    delegate(group)
    const busy = await kernelThat([{ refuses: ['rmdir'], with: 'EBUSY' }])
    const fact = await observeAsPlain(group, { kernel: busy })
    expect(fact).toMatchObject({ rung: 'none', seen: { [group]: 'unknown' } })
  })

  test('is refused a parent that is not writable', async () => {
    const refusal = await observeAsPlain(newGroup(), { cgroupParent: newGroup() })
    expect(refusal.code).toBe('POLICY_INVALID')
    expect(refusal.message).toContain('cannot be written (EACCES)')
  })

  test('is refused a parent outside the part of the tree where it stands', async () => {
    const [own, other] = [newGroup(), newGroup()]
    delegate(other)
    const refusal = await observeAsPlain(own, { cgroupParent: other })
    expect(refusal.message).toContain('no process may be moved')
    expect(refusal.hint).toContain('systemd-run --user --scope')
    expect(childrenOf(other)).toEqual([])
  })
})

/* A plan that had to do without a group is made again as soon as there is one: no cache has to be cleared. */

describeWith(['root', 'plain-user', 'userns'], 'a plan without a group', () => {
  test('is made again when the caller is given one', async () => {
    const group = newGroup()
    const [home, cwd] = [await temporaryDirectory({ owner: 'plain' }), await temporaryDirectory({ owner: 'plain' })]
    const run = async () => {
      const env = { HOME: home, XDG_RUNTIME_DIR: home }
      const { status } = await runCli(['--', 'true'], { as: 'plain', cwd, env, through: processIn(group) })
      expect(status).toBe(0)
      const cache = join(home, '.cache/llm-do/launch')
      return readdirSync(cache).map((name) => readFileSync(join(cache, name), 'utf8').includes(`\0cgroup\0${group}\0`))
    }
    expect([await run(), await run()]).toEqual([[false], [false]]) // The second one is from the cache.
    delegate(group)
    expect(await run()).toContain(true)
  })
})

describeWith(['root', 'plain-user', 'userns'], 'what a place lacks', () => {
  // Under systemd it is not remembered: a manager may say something else the next time.
  test.skipIf(isSystemdRunning())('is believed as long as it looks the same, and no longer', async () => {
    const group = newGroup()
    const home = await temporaryDirectory({ owner: 'plain' })
    const found = async () => {
      const env = { HOME: home, XDG_RUNTIME_DIR: home }
      const call = { as: 'plain', env, program: 'llm-do', through: processIn(group) } as const
      return JSON.parse((await runCli(['doctor', '--facts'], call)).stdout.toString()).cgroup.lacking as string
    }
    const lacking = await found()
    expect(lacking).toContain(`${group} cannot be written`)
    // The remembered text gets other words, to tell it from a new finding.
    const cache = join(home, 'llm-do')
    for (const name of readdirSync(cache).filter((one) => one.startsWith('facts-'))) {
      const file = join(cache, name)
      writeFileSync(file, readFileSync(file, 'utf8').replaceAll('cannot be written', 'is remembered'))
    }
    expect(await found()).toBe(lacking.replaceAll('cannot be written', 'is remembered'))
    chownSync(group, PLAIN_ID, PLAIN_ID)
    expect(await found()).not.toContain('is remembered')
  })
})

/* The question that launch answers before a first run, on groups of the kernel's own. */
const NATIVE_DIRECTORY = join(import.meta.dirname, '../../bin')

const probe = async (...groups: readonly string[]): Promise<string> =>
  (await runPart('launch', ['--probe-host', ...groups])).stdout

const VERSION = /^\d+$/
const ENTERED = /^entered\n\d+$/

test('A directory that is no group is not entered, and the version is told all the same', async () => {
  expect(await probe()).toMatch(VERSION)
  expect(await probe(await temporaryDirectory())).toMatch(VERSION)
  expect(await probe('/nonexistent/group')).toMatch(VERSION)
})

describeWith('root', 'a process is started in a group', () => {
  test('that takes one, which is gone when the answer is there', async () => {
    const group = join(newGroup(), 'inner')
    mkdirSync(group)
    expect(await probe(group)).toMatch(ENTERED)
    expect(readFileSync(join(group, 'cgroup.procs'), 'utf8')).toBe('')
    rmdirSync(group)
  })

  test('but not in one that takes none, for whose words a shell is asked', async () => {
    const above = newGroup()
    const [threads, group] = [join(above, 'threads'), join(above, 'invalid')]
    mkdirSync(threads)
    writeFileSync(join(threads, 'cgroup.type'), 'threaded')
    mkdirSync(group) // "domain invalid", next to threads (cgroup-v2.rst)
    expect(await probe(group)).toMatch(VERSION)
    const questions = processQuestions(NATIVE_DIRECTORY)
    expect(await questions.enter(group)).toEqual({ why: expect.stringMatching(/.+/), isPassing: false })
    expect(await questions.landlockAbi()).toBe(Number(await probe()))
  })

  test('and not through a symbolic link', async () => {
    const link = join(await temporaryDirectory(), 'link')
    symlinkSync(newGroup(), link)
    expect(await probe(link)).toMatch(VERSION)
  })
})
