/** A copy-on-write run from its start to apply and undo: the host has what it had, then what the command made, then what it had. */
import { chmodSync, existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { chown, cp } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { describeWith } from '../support/needs.ts'
import { callers, currentUser, type User, uidOf } from '../support/users.ts'
import { inodesOf, makePlace, type Place, treeOf } from './place.ts'

const EDITS = `
  echo more >> file; printf 'new\\n' > added; rm gone; mkdir -p deep/er; echo x > deep/er/x
  chmod 700 script; ln -sfn file link; rm -r tree; mkdir tree; echo again > tree/again
  rm node; mkdir node; echo inside > node/inside; rm -r swap; echo file > swap; mv moved renamed
  truncate -s 0 empty; cp -p kept copy; rm kept; cp -p copy kept; ln file hard; mkdir empty-dir
  mv renamed/one renamed/two; touch -d '2001-01-01' dated; printf '#!/bin/sh\\n' > run; chmod +x run
`

const FILES = `tree/ tree/below/ swap/ moved/ moved/deep/ file gone script tree/old tree/below/older node swap/a moved/one
  moved/deep/three empty kept dated link@gone`

const WAYS: readonly (readonly [User, readonly string[]])[] = [
  ['root', ['--engine', 'unshare']],
  ['root', ['--engine', 'bwrap']],
  ['plain', ['--engine', 'unshare']],
]

describe.each(WAYS.filter(([user]) => callers().includes(user)))('as %s with %j', (user, options) => {
  describeWith('bwrap', 'a run', () => {
    test('leaves the host as it was, to the inode, is applied as if it had run there, and undone', async () => {
      const place = await makePlace(user, FILES)
      const twin = await makePlace(user)
      await cp(place.project, twin.project, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true })
      await fillOwner(twin)
      const [before, inodes] = [treeOf(place.project), inodesOf(place.project)]
      const { cow, exitCode, stdout } = await place.run(`${EDITS} cat file`, ...options)
      expect(stdout).toBe('file\nmore\n')
      expect([treeOf(place.project), inodesOf(place.project)]).toEqual([before, inodes])
      const direct = await twin.cli('exec', '--rw', '.', ...options, '--', 'sh', '-c', EDITS)
      expect([exitCode, direct.status]).toEqual([0, 0])
      const id = cow?.id ?? ''
      const applied = await place.cli('apply', id)
      expect([applied.status, applied.stderr.toString()]).toEqual([0, expect.stringMatching(/^llm-do: \d+ applied; /)])
      expect(treeOf(place.project, { times: false })).toEqual(treeOf(twin.project, { times: false }))
      expect(readFileSync(join(place.project, 'renamed/deep/three'), 'utf8')).toBe('moved/deep/three\n')
      expect(await place.changes(id)).toEqual([])
      expect((await place.cli('undo', id)).status).toBe(0)
      expect(treeOf(place.project)).toEqual(before)
      // And once more: an undo does not count as a change of the host.
      expect((await place.cli('apply', id)).status).toBe(0)
      expect(treeOf(place.project, { times: false })).toEqual(treeOf(twin.project, { times: false }))
    })
  })
})

async function fillOwner({ project, user }: Place): Promise<void> {
  if (user === 'root') return
  for (const line of treeOf(project)) {
    const path = join(project, line.split(' ')[0] ?? '')
    if (!lstatSync(path).isSymbolicLink()) await chown(path, uidOf('plain'), uidOf('plain'))
  }
}

/** Names, content and what git keeps of a mode: nothing of directories, the bit that makes a file a program. */
const filesOf = ({ project }: Place): readonly string[] =>
  treeOf(project, { times: false })
    .filter((line) => !/^\S+ 4/.test(line))
    .map((line) => line.replace(/ (1[02]0)(\d)\d\d \S+/, (_, type, owner) => ` ${type} ${Number(owner) & 1}`))

describe.each(callers())('as %s', (user) => {
  describe('changes', () => {
    test('with set-id bits, marks of overlay or special files stay in the layer', async () => {
      const place = await makePlace(user)
      for (const name of ['d', 'e']) mkdirSync(join(place.project, name))
      for (const name of ['file', 'd/one', 'e/three']) writeFileSync(join(place.project, name), `${name}\n`)
      await fillOwner(place)
      const { cow, changes = [] } = await place.run(
        `cp /bin/true tool; chmod 755 tool; chmod u+s tool; python3 - <<'END'
import os
for name, mark in (('user.overlay.opaque', b'y'), ('user.overlay.redirect', b'/d'), ('user.note', b'kept'), ('trusted.overlay.opaque', b'y')):
  try: os.setxattr('e', name, mark)
  except OSError: pass
os.setxattr('file', 'user.note', b'kept')
for make in (lambda: os.mknod('whiteout', 0o020000, 0), lambda: os.mkfifo('pipe')):
  try: make()
  except OSError as error: print(error.errno)
END
        echo more >> file; rm -r d; mkdir d; echo only > d/only`,
        '--seccomp',
        'default',
      )
      expect(changes.map(({ path }) => path)).not.toContain('e/three')
      // Sets the bits that the filter refused.
      chmodSync(join(place.layers, cow?.id ?? '', 'zone.0/up/tool'), 0o6755)
      const { status } = await place.cli('apply', cow?.id ?? '')
      expect([status, existsSync(join(place.project, 'tool'))]).toEqual([0, false])
      expect((await place.cli('apply', cow?.id ?? '', 'tool')).status).toBe(0)
      expect(lstatSync(join(place.project, 'tool')).mode & 0o7777).toBe(0o755)
      expect(readdirSync(join(place.project, 'd'))).toEqual(['only'])
      expect(readFileSync(join(place.project, 'e/three'), 'utf8')).toBe('e/three\n')
      const modes = readdirSync(place.project).map((name) => lstatSync(join(place.project, name)))
      expect(modes.filter((one) => (one.mode & 0o6000) !== 0 || !(one.isFile() || one.isDirectory()))).toEqual([])
      const marks = `import os, sys
for at, directories, files in os.walk(sys.argv[1]):
    for name in [*directories, *files]: print(name, *os.listxattr(os.path.join(at, name), follow_symlinks=False))`
      const { stdout } = await execa('python3', ['-c', marks, place.project])
      expect(stdout.split('\n')).toContain('e')
      expect(stdout).not.toMatch(/user\./)
    })

    test('are listed by kind, and the run says how many there are', async () => {
      const place = await makePlace(user, FILES)
      const { cow, changes = [] } = await place.run(EDITS)
      const kinds = Object.fromEntries(changes.map(({ path, kind }) => [path, kind]))
      expect(kinds).toMatchObject({
        file: 'modified',
        added: 'added',
        gone: 'deleted',
        script: 'mode',
        link: 'symlink',
        'tree/old': 'deleted',
        'tree/below/older': 'deleted',
        'tree/again': 'added',
        node: 'type',
        'node/inside': 'added',
        swap: 'type',
        'swap/a': 'deleted',
        'deep/er/x': 'added',
        moved: 'deleted',
        renamed: user === 'root' ? 'renamed' : 'added',
        empty: 'modified',
      })
      // A copy that is equal, and a time that is another one, are no changes.
      expect(Object.keys(kinds)).not.toContain('kept')
      expect(Object.keys(kinds)).not.toContain('dated')
      expect(cow?.message).toMatch(/^\d+ changed, .*: llm-do diff [a-z0-9]{8}$/)
      expect(await place.changes(cow?.id ?? '')).toEqual(changes)
    })
  })
})

describeWith('one-user', 'changes', () => {
  const user = currentUser()

  test('are a patch in colours at a terminal, through the person’s pager, without what a terminal would obey', async () => {
    const place = await makePlace(user, FILES)
    const { cow } = await place.run("printf 'x\\033]0;title\\007\\n' >> file")
    const diff = (variables: Readonly<Record<string, string>>) =>
      place.atTerminal(['diff', cow?.id ?? '', 'file'], { variables })
    const coloured = await diff({ PAGER: 'cat' })
    expect(coloured).toContain('\u001b[32m+x')
    expect(coloured).not.toMatch(/\u001b\]|\u0007/)
    expect(await diff({ PAGER: 'cat', NO_COLOR: '1' })).not.toContain('\u001b')
    expect(await diff({ PAGER: 'sed s/^/paged:/' })).toContain('paged:')
    // Control: for programs it is what the command wrote.
    expect((await place.cli('diff', cow?.id ?? '', 'file')).stdout.toString()).toContain('\u001b]0;title\u0007')
  })

  test('are a patch in the form of git, by which git gives a copy the same files, whatever is in names and files', async () => {
    const place = await makePlace(user, FILES)
    const twin = await makePlace(user)
    await cp(place.project, twin.project, { recursive: true, verbatimSymlinks: true })
    const odd = `printf '\\000\\377' >> tree/again; printf x > "$(printf 'a\\nb')"; printf '\\033[31mred' > colours; git init -q .`
    const id = (await place.run(`${EDITS} ${odd}`)).cow?.id ?? ''
    const { stdout, stderr } = await place.cli('diff', id)
    expect(stderr.toString()).toContain('inside .git are not in the patch')
    expect(readdirSync(join(place.layers, id))).not.toContain('view')
    const git = (...words: readonly string[]) =>
      execa('git', ['--git-dir', join(twin.project, '../repository'), '--work-tree', '.', ...words], {
        cwd: twin.project,
      })
    await git('init', '-q')
    await git('add', '--all')
    const tree = (await git('write-tree')).stdout
    await execa('git', ['apply'], { cwd: twin.project, input: stdout })
    await git('add', '--all')
    const own = await git('diff', '--no-renames', '--no-color', tree)
    const heads = (patch: string) => patch.split('\n').filter((line) => line.startsWith('diff --git '))
    expect(heads(stdout.toString()).toSorted()).toEqual(heads(own.stdout).toSorted())
    expect((await place.cli('apply', id)).status).toBe(0)
    expect(filesOf(twin)).toEqual(filesOf(place))
  })

  test('are applied in part, with the directories that they need', async () => {
    const place = await makePlace(user, FILES)
    const { cow } = await place.run(EDITS)
    const id = cow?.id ?? ''
    // Without an ID, a word with a slash is a path of the last run here.
    for (const path of ['./deep', 'deep/', join(place.project, 'deep')])
      expect((await place.cli('diff', path)).stdout.toString(), path).toContain('deep/er/x')
    expect((await place.cli('apply', id, 'deep/er/x', 'gone')).status).toBe(0)
    expect(readFileSync(join(place.project, 'deep/er/x'), 'utf8')).toBe('x\n')
    expect(existsSync(join(place.project, 'gone'))).toBe(false)
    expect(readFileSync(join(place.project, 'file'), 'utf8')).toBe('file\n')
    expect((await place.changes(id)).map(({ path }) => path)).not.toContain('deep/er/x')
    expect((await place.cli('apply', id)).status).toBe(0)
    expect(await place.changes(id)).toEqual([])
  })
})
