/** `--allow-host @npm` and its like, for real: files of a user, a project that wants more, the launch cache. */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Plan } from '../../src/plan/plan.ts'
import type { Result } from '../../src/report/result.ts'
import { runCli } from '../support/cli.ts'
import { newDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { PLAIN_ID } from '../support/users.ts'
import { resultOf, shell } from './ways.ts'
import { openWorld, WORLD, type World } from './world.ts'

const ZONE = { 'api.test': [[WORLD]], 'other.test': [[WORLD]], 'evil.test': [[WORLD]] } as const

let world: World
let home: Awaited<ReturnType<typeof newDirectory>>
let project: Awaited<ReturnType<typeof newDirectory>>

const ask = (...hosts: readonly string[]) =>
  shell(hosts.map((host) => `curl -s -m 5 -o /dev/null -w '${host} %{http_code}\\n' http://${host}/say`).join('; '))

const call = (env: Readonly<Record<string, string>> = {}) => ({
  through: world.through,
  cwd: project.path,
  env: { HOME: home.path, ...env },
})
const run = (words: readonly string[], command: readonly string[], env?: Readonly<Record<string, string>>) =>
  resultOf({ ...call(env), words, command })

const reached = ({ stdout }: Result): readonly string[] =>
  stdout.split('\n').flatMap((line) => (line.endsWith(' 200') ? [line.slice(0, -4)] : []))

/** All that is kept of runs below the user's home. */
async function kept(): Promise<string> {
  const files = await readdir(home.path, { recursive: true, withFileTypes: true })
  const own = files.filter((file) => file.isFile() && file.name !== '.npmrc')
  const texts = await Promise.all(own.map((file) => readFile(join(file.parentPath, file.name), 'latin1')))
  return texts.join('\n')
}

describeWith('root', 'the hosts that a tool is set up for', () => {
  beforeAll(async () => {
    world = await openWorld(ZONE)
  })
  afterAll(() => world.close())
  beforeEach(async () => {
    ;[home, project] = [await newDirectory(), await newDirectory()]
  })
  afterEach(async () => {
    await home.remove()
    await project.remove()
  })

  const npmrc = (text: string) => writeFile(join(home.path, '.npmrc'), text)

  test("the user's registry is reached, and nothing keeps its password", async () => {
    await npmrc('registry=http://me:hunter2@api.test/npm/\n//api.test/npm/:_authToken=hunter3\n')
    const result = await run(['--allow-host', '@npm'], ask('api.test', 'other.test'))
    expect(reached(result)).toEqual(['api.test'])
    expect(result.network).toContainEqual(expect.objectContaining({ host: 'api.test', rule: 'api.test:80' }))
    const { stdout } = await runCli(['--plan=json', '--allow-host', '@npm', '--', 'true'], call())
    const plan = JSON.parse(stdout.toString()) as Plan
    expect(plan.network).toEqual({
      by: 'nftables',
      mode: 'restricted',
      allow: ['api.test:80'],
      deny: [],
      tools: [{ name: '@npm', hosts: ['api.test:80'], from: [join(home.path, '.npmrc')] }],
    })
    expect(`${stdout}${JSON.stringify(result)}${await kept()}`).not.toMatch(/hunter/)
  })

  describe('a project that names a host of its own', () => {
    beforeEach(async () => {
      await npmrc('registry=http://api.test/\n')
      await writeFile(join(project.path, '.npmrc'), 'registry=http://evil.test/\n@x:registry=http://other.test/\n')
    })

    test('opens nothing unless the caller says so, and the warning names the flag', async () => {
      const hosts = ['api.test', 'evil.test', 'other.test']
      const result = await run(['--allow-host', '@npm'], ask(...hosts))
      expect(reached(result)).toEqual(['api.test'])
      expect(result.warnings).toEqual([
        expect.stringMatching(
          /^@npm: evil\.test:80 is named only by the project .*--allow-host evil\.test:80 opens it/,
        ),
        expect.stringMatching(/^@npm: other\.test:80 is named only by the project/),
      ])
      const control = await run(['--allow-host', '@npm,evil.test:80', '--deny-host', 'other.test'], ask(...hosts))
      expect([reached(control), control.warnings]).toEqual([['api.test', 'evil.test'], []])
    })

    test('has a worker that may ask for what was granted only', async () => {
      const worker = (hosts: string) =>
        writeFile(
          join(project.path, 'w.worker'),
          `---\nname: w\ntoolsets: { shell: { rules: [{ pattern: "curl", approval: allow }] } }\nsandbox:\n  network: { allow: [${hosts}] }\n---\nx\n`,
        )
      const words = (more: readonly string[]) => ['--worker', './w.worker', '--approval', 'approve_all', ...more]
      const curl = (host: string) => ['curl', '-sS', '-m', '5', `http://${host}/say`]
      await worker('"@npm"')
      for (const more of [[], ['--allow-host', 'api.test']])
        expect(await run(words(more), curl('api.test'))).toMatchObject({ error: { code: 'POLICY_ESCALATION' } })
      const granted = ['--allow-host', '@npm']
      expect(await run(words(granted), curl('api.test'))).toMatchObject({
        exitCode: 0,
        network: [{ host: 'api.test' }],
      })
      expect(await run(words(granted), curl('evil.test'))).toMatchObject({
        exitCode: 6,
        denials: [{ target: 'evil.test' }],
      })
    })
  })

  test('another file or variable is another plan, also where the plan was kept', async () => {
    await npmrc('registry=http://api.test/\n')
    const words = ['--allow-host', '@npm']
    for (let times = 0; times < 2; times += 1)
      expect(reached(await run(words, ask('api.test', 'other.test')))).toEqual(['api.test'])
    const env = { npm_config_registry: 'http://me:hunter2@other.test/' }
    expect(reached(await run(words, ask('api.test', 'other.test'), env))).toEqual(['other.test'])
    expect(await kept()).not.toContain('hunter2')
    await npmrc('registry=http://other.test/\n')
    expect(reached(await run(words, ask('api.test', 'other.test')))).toEqual(['other.test'])
  })

  test('the remotes of a repository of the caller, and of nobody else', async () => {
    await mkdir(join(project.path, 'deep'))
    await execa('git', ['init', '-q', project.path])
    await execa('git', ['-C', project.path, 'remote', 'add', 'origin', 'http://api.test/repo.git'])
    const result = await run(['--allow-host', '@git'], ask('api.test', 'other.test'))
    expect(reached(result)).toEqual(['api.test'])
    await execa('chown', ['-R', `${PLAIN_ID}`, join(project.path, '.git')])
    const refused = await run(['--allow-host', '@git'], ask('api.test'))
    expect(refused.error).toMatchObject({
      code: 'POLICY_INVALID',
      message: expect.stringContaining('@git: no remote of a repository of yours'),
    })
  })

  test('a tool that is set up for nothing is refused, with what was looked at', async () => {
    const { error } = await run(['--allow-host', '@cargo'], ['true'])
    expect(error).toMatchObject({
      code: 'POLICY_INVALID',
      message: expect.stringContaining(`${home.path}/.cargo/config.toml`),
    })
    expect(error?.hint).toContain('--allow-host')
  })
})
