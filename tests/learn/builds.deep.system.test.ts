import { join } from 'node:path'
import { expect } from 'vitest'
import { describeWith, testWith } from '../support/needs.ts'
import { expectEnough, type Row, reading } from './builds.ts'

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
  {
    what: 'a vite build',
    files: {
      'index.html': '<script type="module" src="/main.js"></script>',
      'main.js': `import { two } from './two.js'\ndocument.title = two\n`,
      'two.js': `export const two = 'two'\n`,
    },
    command: ['node', join(MODULES, 'vite/bin/vite.js'), 'build'],
    learns: () => ({ workspace: 'rw', zones: expect.anything() }),
  },
]

describeWith(['userns', 'git'], 'what is learned of', () => {
  for (const row of ROWS)
    testWith(row.what === 'pytest' ? 'pytest' : [], `${row.what} is enough, and no more than enough`, () =>
      expectEnough(row),
    )
})
