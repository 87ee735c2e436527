import { expect, test } from 'vitest'
import { matches, parseTranscript } from './transcript.ts'

const markdown = `# Title
text
## First thing
\`\`\`console
$ echo a \\
> b
a b
$ false
[exit 1]
\`\`\`
\`\`\`yaml
$ not a command
\`\`\`
## Nothing to run
## Second thing
\`\`\`console
$ true
\`\`\`
`

test('a transcript is a list of sessions with commands, outputs and exit statuses', () => {
  expect(parseTranscript(markdown)).toEqual([
    {
      title: 'First thing',
      steps: [
        { command: 'echo a \\\nb', expected: ['a b'], status: 0, line: 5 },
        { command: 'false', expected: [], status: 1, line: 8 },
      ],
    },
    { title: 'Second thing', steps: [{ command: 'true', expected: [], status: 0, line: 17 }] },
  ])
})

test.each([
  [[], '', true],
  [[], 'x\n', false],
  [['a'], 'a\n', true],
  [['a'], 'a', true],
  [['a'], 'ab\n', false],
  [['a{{any}}c'], 'abbc\n', true],
  [['a{{any}}c'], 'ab\nc\n', false],
  [['a.c'], 'abc\n', false],
  [['a', '...', 'z'], 'a\nb\nc\nz\n', true],
  [['a', '...'], 'a\n', true],
])('%j against %j: %s', (expected, output, isSame) => {
  expect(matches(expected, output)).toBe(isSame)
})

test('a block that does not begin with a command is an error, not a test that passes', () => {
  expect(() => parseTranscript('```console\nonly output\n```\n')).toThrow('line 2')
  expect(() => parseTranscript('```console\n$ true\n')).toThrow('no end')
})
