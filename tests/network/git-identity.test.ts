/** Of the caller's configuration of git the identity alone, as git reads it. */
import { expect, test } from 'vitest'
import { gitIdentity } from '../../src/network/tools/git.ts'
import type { Look } from '../../src/network/tools/look.ts'

const lookAt = (files: Readonly<Record<string, string>>): Look =>
  ({
    home: '/h',
    configHome: '/h/.config',
    cwd: '/p',
    variable: () => undefined,
    text: (path) => files[path],
  }) as Partial<Look> as Look

test.each<[string, Readonly<Record<string, string>>, object]>([
  ['nothing', {}, {}],
  ['the last file', { '/etc/gitconfig': '[user]\nname = A', '/h/.gitconfig': '[user]\n\tname = B\n' }, { name: 'B' }],
  [
    'quotes',
    { '/h/.gitconfig': '[user]\nname = "Ann \\"Q\\" Lee"\nemail = a@b' },
    { name: 'Ann "Q" Lee', email: 'a@b' },
  ],
  [
    'an included file',
    { '/h/.gitconfig': '[include]\npath = ~/me\n', '/h/me': '[user]\nemail = a@b' },
    { email: 'a@b' },
  ],
  ['no other section', { '/h/.gitconfig': '[user "x"]\nname = A\n[author]\nname = B\n[credential]\nhelper = c' }, {}],
  ['no repository', { '/p/.git/config': '[user]\nname = A' }, {}],
])('%s', (_, files, identity) => {
  expect(gitIdentity(lookAt(files))).toEqual(identity)
})
