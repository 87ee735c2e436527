/**
 * The learned profile is enough for the same command, the host is unchanged meanwhile, and without a line of the profile the command
 * fails.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ATTACKED_ZONE } from '../network/ways.ts'
import { openWorld } from '../network/world.ts'
import { runHere } from '../real/in-process.ts'
import { runCli } from '../support/cli.ts'
import { cliHere } from '../support/cli-here.ts'
import { describeWith } from '../support/needs.ts'
import { at, expectEnough, learn, makePlace, policyOf, type Row, reading } from './builds.ts'

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

describeWith(['userns', 'gcc', 'git'], 'what is learned of', () => {
  test.each(ROWS)('$what is enough, and no more than enough', expectEnough)

  test('places of credentials are told apart, and never shown', async () => {
    const place = await makePlace({})
    await mkdir(join(place, '.ssh'))
    await writeFile(join(place, '.ssh/id'), 'the secret\n')
    const command = ['sh', '-c', `cat ${place}/.ssh/id; cat ${place}/data/words`]
    const { status, stdout } = await learn(place, ['--', ...command])
    expect(status).toBe(0)
    expect(stdout.toString()).toContain(`#   ${place}/.ssh/id\n`)
    expect(JSON.stringify(policyOf(stdout.toString()))).not.toContain('.ssh')
  })

  test('a command that nothing helps keeps its status, and there is no profile', async () => {
    const place = await makePlace({})
    const learned = await learn(place, ['-c', 'echo x > made; echo broken >&2; exit 7'])
    expect({ status: learned.status, stdout: learned.stdout.toString() }).toEqual({ status: 7, stdout: '' })
    expect(learned.stderr.toString()).toMatch(/^broken\nllm-do: nothing that may be granted[^\n]*\n$/)
  })

  test('an option that leaves a trace is refused', async () => {
    const place = await makePlace({})
    const { status, stdout, stderr } = await learn(place, ['--audit=log', '--', 'true'])
    expect({ status, stdout: stdout.toString() }).toEqual({ status: 125, stdout: '' })
    expect(stderr.toString()).toContain('--audit: what is learned')
  })

  test('a small file system that is empty is not said to be full', async () => {
    const place = await makePlace({})
    const result = await runHere(['--tmpfs', '/small:32k', '-c', 'exit 3'], at(place))
    expect(result).toMatchObject({ exitCode: 3, denials: [] })
  })

  test('the changes of a run are nowhere when it was learned from', async () => {
    const place = await makePlace({})
    await learn(place, ['-c', 'echo made > made'])
    const { stdout } = await cliHere(['ps', '--cow', '--json'], at(place))
    // Root's changes are kept in one place for the whole machine.
    expect(stdout.toString()).not.toContain(place)
    await expect(readFile(join(place, 'app/made'))).rejects.toThrow('ENOENT')
  })
})

describeWith('root', 'a command that asks for hosts', () => {
  test('learns those that it needs, by name', async () => {
    const world = await openWorld(ATTACKED_ZONE, { hostServes: true })
    try {
      const place = await makePlace({})
      const script = 'curl -sS -m 5 http://other.test/say; curl -sS -m 5 http://api.test/say'
      const options = { ...at(place), program: 'llm-do', through: world.through } as const
      const { status, stdout, stderr } = await runCli(['learn', '-c', script], options)
      expect({ status, stderr: stderr.toString() }).toMatchObject({ status: 0 })
      expect(policyOf(stdout.toString())).toMatchObject({ network: { allow: ['api.test'] } })
    } finally {
      await world.close()
    }
  })
})
