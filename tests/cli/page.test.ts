import { expect, test } from 'vitest'
import { readInstructions } from './page.ts'

const PAGE = `# Title
\`\`\`sh
not below a heading
\`\`\`
## First
Text with \`a.txt\`:

\`\`\`json
{ "shown": 1 }
\`\`\`

\`~/a.sh\`:

\`\`\`sh
of the file
\`\`\`

\`\`\`sh
one
\`\`\`

\`\`\`sh
two
\`\`\`
## Second
`

test('a page is read as files, one script and what is only shown, a heading at a time', () => {
  expect(readInstructions(PAGE)).toEqual([
    { title: 'First', files: { '~/a.sh': 'of the file\n' }, script: 'one\ntwo\n', shown: ['{ "shown": 1 }\n'] },
    { title: 'Second', files: {}, script: '', shown: [] },
  ])
})
