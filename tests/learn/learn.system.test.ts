/**
 * Real builds: the profile that is learned is enough for the same command, nothing on the host has changed while it was learned, and without
 * one of its lines the command fails.
 */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { parse, stringify } from 'yaml'
import { ATTACKED_ZONE } from '../network/ways.ts'
import { openWorld } from '../network/world.ts'
import { runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { callers, currentUser, PLAIN_ID, type User } from '../support/users.ts'

/** `app` is where the command runs, `data` lies beside it. */
async function makePlace(as: User, files: Readonly<Record<string, string>>): Promise<string> {
  const place = await temporaryDirectory({ owner: as })
  await mkdir(join(place, 'app'))
  await mkdir(join(place, 'data'))
  await writeFile(join(place, 'data/words'), 'two words\n')
  for (const [name, text] of Object.entries(files)) {
    await mkdir(join(place, 'app', name, '..'), { recursive: true })
    await writeFile(join(place, 'app', name), text.replaceAll('PLACE', place))
  }
  await execa('git', ['init', '-q', join(place, 'app')])
  if (as !== currentUser()) await execa('chown', ['-R', `${PLAIN_ID}:${PLAIN_ID}`, place])
  return place
}

const MODULES = join(import.meta.dirname, '../../node_modules')
const at = (place: string, as: User) => ({ as, cwd: join(place, 'app'), env: { HOME: place } })
const learn = (place: string, as: User, words: readonly string[]) =>
  runCli(['learn', ...words], { ...at(place, as), program: 'llm-do' })

interface Row {
  readonly what: string
  readonly files: Readonly<Record<string, string>>
  readonly command: readonly string[]
  /** What the profile names beside limits. */
  readonly learns: (place: string) => object
}

const reading = (place: string) => ({ zones: [{ mode: 'ro', hostPath: join(place, 'data/words') }] })

const ROWS: readonly Row[] = [
  {
    what: 'make and gcc',
    files: {
      Makefile: 'all: main.c\n\tgcc -o main main.c\n\tcat PLACE/data/words > words\n',
      'main.c': 'int main(void) { return 0; }\n',
    },
    command: ['make'],
    learns: (place) => ({ workspace: 'rw', ...reading(place) }),
  },
  {
    what: 'npm test',
    files: {
      'package.json': '{ "name": "a", "scripts": { "test": "node --test" } }',
      'a.test.js': `require('node:test')('reads', () => require('fs').readFileSync('PLACE/data/words'))`,
    },
    command: ['npm', 'test'],
    learns: reading,
  },
  {
    what: 'pytest',
    files: { 'test_a.py': 'def test_reads():\n    assert open("PLACE/data/words").read() == "two words\\n"\n' },
    command: ['/usr/bin/python3', '-m', 'pytest', '-q'],
    learns: (place) => ({ workspace: 'rw', ...reading(place) }),
  },
  {
    what: 'git',
    files: { 'a.txt': 'a\n' },
    command: ['sh', '-c', 'git add a.txt && git -c user.name=a -c user.email=a@b.c commit -qm a'],
    learns: () => ({ workspace: 'rw' }),
  },
  {
    what: 'a command that needs nothing',
    files: {},
    command: ['true'],
    learns: () => ({}),
  },
  {
    what: 'more room than /tmp has',
    files: {},
    command: ['dd', 'if=/dev/zero', 'of=/tmp/full', 'bs=1M', 'count=60'],
    learns: () => ({ resources: expect.objectContaining({ tmp: '100m' }) }),
  },
]

const policyOf = (text: string) => (parse(text) as { sandbox: Record<string, unknown> }).sandbox

describe.each(callers())('as %s, what is learned of', (as) => {
  test.each(ROWS)('$what is enough, and no more than enough', async ({ files, command, learns }) => {
    const place = await makePlace(as, files)
    const before = await readdir(join(place, 'app'))
    const learned = await learn(place, as, ['--', ...command])
    const text = learned.stdout.toString()
    expect({ status: learned.status, text, stderr: learned.stderr.toString() }).toMatchObject({ status: 0 })
    expect(await readdir(join(place, 'app'))).toEqual(before)

    const { extends: base, resources, ...rest } = policyOf(text)
    expect({ resources, ...rest }).toEqual({ resources: expect.anything(), ...learns(place) })
    expect(base).toBe('default')

    const profile = join(place, 'learned.yaml')
    const run = async (sandbox: object) => {
      await writeFile(profile, stringify({ sandbox }))
      return (await runCli(['--profile', profile, '--', ...command], at(place, as))).status
    }
    for (const key of ['zones', 'workspace'].filter((key) => key in rest && !(key === 'workspace' && 'zones' in rest)))
      expect({ key, status: await run({ ...policyOf(text), [key]: undefined }) }).not.toMatchObject({ status: 0 })
    expect(await run(policyOf(text))).toBe(0)
  })

  test('a vite build is enough, and no more than enough', async () => {
    const place = await makePlace(as, {
      'index.html': '<script type="module" src="/main.js"></script>',
      'main.js': `import { two } from './two.js'\ndocument.title = two\n`,
      'two.js': `export const two = 'two'\n`,
    })
    const command = ['node', join(MODULES, 'vite/bin/vite.js'), 'build']
    const learned = await learn(place, as, ['--', ...command])
    expect({ status: learned.status, stderr: learned.stderr.toString() }).toMatchObject({ status: 0 })
    const profile = join(place, 'learned.yaml')
    await writeFile(profile, learned.stdout)
    expect(policyOf(learned.stdout.toString())).toMatchObject({ workspace: 'rw' })
    expect((await runCli(['--profile', profile, '--', ...command], at(place, as))).status).toBe(0)
    expect(await readdir(join(place, 'app/dist'))).toContain('index.html')
  })

  test('places of credentials are told apart, and never shown', async () => {
    const place = await makePlace(as, {})
    await mkdir(join(place, '.ssh'))
    await writeFile(join(place, '.ssh/id'), 'the secret\n')
    const command = ['sh', '-c', `cat ${place}/.ssh/id; cat ${place}/data/words`]
    const { status, stdout } = await learn(place, as, ['--', ...command])
    expect(status).toBe(0)
    expect(stdout.toString()).toContain(`#   ${place}/.ssh/id\n`)
    expect(JSON.stringify(policyOf(stdout.toString()))).not.toContain('.ssh')
  })

  test('a command that nothing helps keeps its status, and there is no profile', async () => {
    const place = await makePlace(as, {})
    const learned = await learn(place, as, ['-c', 'echo broken >&2; exit 7'])
    expect({ status: learned.status, stdout: learned.stdout.toString() }).toEqual({ status: 7, stdout: '' })
    expect(learned.stderr.toString()).toMatch(/^broken\nllm-do: nothing that may be granted/)
  })

  test.each(['--worker=w', '--workshop=w', '--audit=log', '--plan', '--why=memory'])(
    '%s is refused, not left out',
    async (flag) => {
      const place = await makePlace(as, {})
      const { status, stdout, stderr } = await learn(place, as, [flag, '--', 'true'])
      expect({ status, stdout: stdout.toString() }).toEqual({ status: 125, stdout: '' })
      expect(stderr.toString()).toContain(`${flag.split('=')[0]}: what is learned`)
    },
  )

  test('a small file system that is empty is not said to be full', async () => {
    const place = await makePlace(as, {})
    const { stdout } = await runCli(['--json', '--tmpfs', '/small:32k', '-c', 'exit 3'], at(place, as))
    expect(JSON.parse(stdout.toString())).toMatchObject({ exitCode: 3, denials: [] })
  })

  test('the changes of a run are nowhere when it was learned from', async () => {
    const place = await makePlace(as, {})
    await learn(place, as, ['-c', 'echo made > made'])
    const { stdout } = await runCli(['ps', '--cow', '--json'], { ...at(place, as), program: 'llm-do' })
    // Root's changes are kept in one place for the whole machine.
    expect(stdout.toString()).not.toContain(place)
    await expect(readFile(join(place, 'app/made'))).rejects.toThrow('ENOENT')
  })
})

describeWith('root', 'a command that asks for hosts', () => {
  test('learns those that it needs, by name', async () => {
    const world = await openWorld(ATTACKED_ZONE, { hostServes: true })
    try {
      const place = await makePlace(currentUser(), {})
      const script = 'curl -sS -m 5 http://other.test/say; curl -sS -m 5 http://api.test/say'
      const options = { ...at(place, currentUser()), program: 'llm-do', through: world.through } as const
      const { status, stdout, stderr } = await runCli(['learn', '-c', script], options)
      expect({ status, stderr: stderr.toString() }).toMatchObject({ status: 0 })
      expect(policyOf(stdout.toString())).toMatchObject({ network: { allow: ['api.test'] } })
    } finally {
      await world.close()
    }
  })
})
