/** The conditions of `make release`, before it builds anything. */
import { join } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')

interface Input {
  readonly status: string
  readonly commit: string
  readonly tree: string
  readonly tested?: string | undefined
  readonly tag: string
  readonly facts: object
  readonly versions: Readonly<Record<string, string>>
  readonly changelog: string
}
const { problemsOf } = (await import(join(ROOT, 'packaging/release-checks.mjs'))) as {
  readonly problemsOf: (input: Input) => readonly string[]
}
const { factsOf } = (await import(join(ROOT, 'packaging/facts.mjs'))) as {
  readonly factsOf: (manifest: object, env?: object) => Readonly<Record<string, unknown>>
}

const MANIFEST = {
  version: '1.2.3',
  author: 'maintainers <maintainers@project.example>',
  repository: { type: 'git', url: 'git+https://project.example/it.git' },
}
const DECIDED = { REPOSITORY: 'https://github.com/someone/it', MAINTAINER: 'A Name <name@mail.org>' }
const READY: Input = {
  status: '',
  commit: 'c',
  tree: 't',
  tested: 't',
  tag: '',
  facts: factsOf(MANIFEST, DECIDED),
  versions: { 'package-lock.json': '1.2.3' },
  changelog: '# Changelog\n\n## 1.2.3\n\n- New.\n\n## 1.2.2\n\n- Old.\n',
}

test('a tree that is clean, tested, of one version and of a decided address is released', () => {
  expect(problemsOf(READY)).toEqual([])
  expect(problemsOf({ ...READY, tag: 'c' }), 'the tag of this commit').toEqual([])
})

test.each<[string, Partial<Input>, RegExp]>([
  ['changes that are not committed', { status: ' M src/index.ts' }, /not committed:\n M src\/index\.ts\n.*git stash/],
  ['tests that have not run', { tested: undefined }, /make test has not passed on this commit/],
  ['tests of other sources', { tested: 'other' }, /make test has not passed on this commit/],
  ['a tag of another commit', { tag: 'other' }, /^tag v1\.2\.3: expected commit c, got other/],
  [
    'a lock of another version',
    { versions: { 'package-lock.json': '1.2.2' } },
    /^package-lock\.json: expected version 1\.2\.3 of package\.json, got 1\.2\.2$/,
  ],
  [
    'a changelog without this version',
    { changelog: '# Changelog\n\n## 1.2.2\n\n- Old.\n' },
    /^CHANGELOG\.md, newest section: expected version 1\.2\.3 of package\.json, got 1\.2\.2$/,
  ],
  [
    'an address that is not decided',
    { facts: factsOf(MANIFEST, { MAINTAINER: DECIDED.MAINTAINER }) },
    /^the address is not decided .*REPOSITORY=/,
  ],
  [
    'a maintainer who is not decided',
    { facts: factsOf(MANIFEST, { REPOSITORY: DECIDED.REPOSITORY }) },
    /^the maintainer is not decided .*MAINTAINER=/,
  ],
])('%s: refused', (_, change, problem) => {
  expect(problemsOf({ ...READY, ...change })).toEqual([expect.stringMatching(problem)])
})

test('every problem is reported at once', () => {
  const all = {
    status: '?? x',
    tested: undefined,
    tag: 'x',
    facts: factsOf(MANIFEST),
    versions: { a: '' },
    changelog: '',
  }
  expect(problemsOf({ ...READY, ...all })).toHaveLength(7)
})

test('the address of a release is in the three fields that npm shows', () => {
  expect(factsOf(MANIFEST, { REPOSITORY: 'https://github.com/someone/it.git' })).toMatchObject({
    repository: { type: 'git', url: 'git+https://github.com/someone/it.git' },
    homepage: 'https://github.com/someone/it#readme',
    bugs: { url: 'https://github.com/someone/it/issues' },
  })
})
