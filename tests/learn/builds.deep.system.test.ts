/** Profiles that are learned of real test runners and builds. */
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runCli } from '../support/cli.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { at, expectEnough, learn, makePlace, policyOf, type Row, reading } from './builds.ts'

const MODULES = join(import.meta.dirname, '../../node_modules')

const ROWS: readonly Row[] = [
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
]

describeWith(['userns', 'git'], 'what is learned of', () => {
  for (const row of ROWS)
    testWith(row.what === 'pytest' ? 'pytest' : [], `${row.what} is enough, and no more than enough`, () =>
      expectEnough(row),
    )

  test('a vite build is enough, and no more than enough', async () => {
    const place = await makePlace({
      'index.html': '<script type="module" src="/main.js"></script>',
      'main.js': `import { two } from './two.js'\ndocument.title = two\n`,
      'two.js': `export const two = 'two'\n`,
    })
    const command = ['node', join(MODULES, 'vite/bin/vite.js'), 'build']
    const learned = await learn(place, ['--', ...command])
    expect({ status: learned.status, stderr: learned.stderr.toString() }).toMatchObject({ status: 0 })
    const profile = join(place, 'learned.yaml')
    await writeFile(profile, learned.stdout)
    expect(policyOf(learned.stdout.toString())).toMatchObject({ workspace: 'rw' })
    expect((await runCli(['--profile', profile, '--', ...command], at(place))).status).toBe(0)
    expect(await readdir(join(place, 'app/dist'))).toContain('index.html')
  })
})
