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

const SIGNED = '[commit]\ngpgsign = true\n[gpg]\nformat = ssh\n[user]\n'

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
  ['no key where nothing is signed', { '/h/.gitconfig': '[gpg]\nformat = ssh\n[user]\nsigningkey = ~/k.pub' }, {}],
  [
    'the public key of a private one',
    { '/h/.gitconfig': `${SIGNED}signingkey = ~/k\n`, '/h/k': 'PRIVATE', '/h/k.pub': 'ssh-ed25519 AAAA me\n' },
    { signing: { signs: ['commit'], key: 'ssh-ed25519 AAAA' } },
  ],
  [
    'a key that is written out',
    { '/h/.gitconfig': `${SIGNED}signingkey = key::ssh-ed25519 AAAA me\n[tag]\ngpgsign = yes` },
    { signing: { signs: ['commit', 'tag'], key: 'ssh-ed25519 AAAA' } },
  ],
  [
    'no private key',
    { '/h/.gitconfig': `${SIGNED}signingkey = ~/k`, '/h/k': 'PRIVATE' },
    { signing: { signs: ['commit'] } },
  ],
  [
    'no key of GnuPG',
    { '/h/.gitconfig': '[commit]\ngpgsign = true\n[user]\nsigningkey = ABC' },
    { signing: { signs: ['commit'] } },
  ],
  ['no repository', { '/p/.git/config': '[user]\nname = A' }, {}],
])('%s', (_, files, identity) => {
  expect(gitIdentity(lookAt(files))).toEqual(identity)
})
