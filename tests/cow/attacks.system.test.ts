/** A command may leave anything in its layer, and the host may change meanwhile: no planted entry is followed, and nothing is lost. */
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { describeWith, testWith } from '../support/needs.ts'
import { currentUser } from '../support/users.ts'
import { killEverywhere } from './kills.ts'
import { DECIDED, makePlace, type Place, stoppedApply, treeOf } from './place.ts'

const FILES = 'd/ e/ file gone d/one d/two e/three ../outside/secret ../outside/one'

const secret = ({ outside }: Place): readonly string[] => treeOf(outside)

const idOf = async (place: Place, script: string): Promise<string> => (await place.run(script)).cow?.id ?? ''

const user = currentUser()

describe(`as ${user}`, () => {
  describe('a link', () => {
    test('that took the place of a directory since the run is not followed, and nothing is applied', async () => {
      const place = await makePlace(user, FILES)
      const before = secret(place)
      const id = await idOf(place, 'echo changed > d/one; echo new > d/new; rm d/two')
      renameSync(join(place.project, 'd'), join(place.project, 'was'))
      symlinkSync(place.outside, join(place.project, 'd'))
      const { status, stderr } = await place.cli('apply', id)
      expect([status, secret(place)]).toEqual([3, before])
      expect(stderr.toString()).toContain('conflict: d')
      // Control: without the link the same changes are applied.
      rmSync(join(place.project, 'd'))
      renameSync(join(place.project, 'was'), join(place.project, 'd'))
      expect((await place.cli('apply', '--force', id)).status).toBe(0)
      expect(readFileSync(join(place.project, 'd/one'), 'utf8')).toBe('changed\n')
    })

    test('put in the way while it is applied is not followed, and all of it is taken back', async () => {
      const place = await makePlace(user, FILES)
      const before = secret(place)
      const id = await idOf(place, 'echo new > d/new')
      // Stopped between its last look and its first step.
      const { ended, goOn } = await stoppedApply(place, id, ['d/new'])
      renameSync(join(place.project, 'd'), join(place.project, 'was'))
      symlinkSync(place.outside, join(place.project, 'd'))
      goOn()
      const { exitCode } = await ended
      expect([exitCode, secret(place)]).toEqual([125, before])
      expect(existsSync(join(place.project, 'was/new'))).toBe(false)
      // Control: without the link it is applied.
      rmSync(join(place.project, 'd'))
      renameSync(join(place.project, 'was'), join(place.project, 'd'))
      expect((await place.cli('apply', id)).status).toBe(0)
      expect(readFileSync(join(place.project, 'd/new'), 'utf8')).toBe('new\n')
    })

    test('of the command is applied as a link, and is said to lead out', async () => {
      const place = await makePlace(user, FILES)
      const { cow, changes = [] } = await place.run(
        `ln -s ../outside/secret up; ln -s /etc/passwd absolute; ln -s file inside; rm -r e; ln -s ../outside e`,
      )
      expect(changes.filter(({ outside }) => outside).map(({ path }) => path)).toEqual(['absolute', 'e', 'up'])
      const before = secret(place)
      expect((await place.cli('apply', cow?.id ?? '')).status).toBe(0)
      expect(readlinkSync(join(place.project, 'e'))).toBe('../outside')
      expect(secret(place)).toEqual(before)
    })

    test('in one directory does not lead the patch of another one out of it', async () => {
      const place = await makePlace(user)
      const other = join(place.outside, 'other')
      mkdirSync(other)
      const planted = `ln -s ${place.outside} ${other}/d; mkdir -p d/planted; echo x > d/planted/x; echo y > y`
      const { cow } = await place.run(planted, '--cow', other)
      const before = secret(place)
      const { status, stdout, stderr } = await place.cli('diff', cow?.id ?? '')
      expect([secret(place), status, stderr.toString()]).toEqual([before, 0, ''])
      // Control: both are in the patch, which git takes in each directory.
      expect(stdout.toString().match(/^\+\+\+ .*/gm)).toEqual(['+++ b/0/d', '+++ b/1/d/planted/x', '+++ b/1/y'])
      const part = await place.cli('diff', cow?.id ?? '', place.project)
      await execa('git', ['apply', '-p2'], { cwd: place.project, input: part.stdout })
      expect(readFileSync(join(place.project, 'd/planted/x'), 'utf8')).toBe('x\n')
    })

    test('in place of the whole directory is refused', async () => {
      const place = await makePlace(user, FILES)
      const id = await idOf(place, 'echo changed > file')
      renameSync(place.project, `${place.project}.was`)
      symlinkSync(place.outside, place.project)
      const before = secret(place)
      const { status, stderr } = await place.cli('apply', id)
      expect([status, secret(place)]).toEqual([125, before])
      expect(stderr.toString()).toContain('was moved, removed or replaced')
      rmSync(place.project)
      renameSync(`${place.project}.was`, place.project)
      expect((await place.cli('apply', id)).status).toBe(0)
    })
  })

  describe('what must not reach the host', () => {
    test('hooks and configuration of git are left alone until they are named, at every level', async () => {
      const place = await makePlace(user, FILES)
      await execa('sh', ['-c', 'git init -q . && mkdir -p lib && git init -q lib'], { cwd: place.project })
      const { cow, changes = [] } = await place.run(`
        for at in . lib; do echo '[core]' >> $at/.git/config; printf '#!/bin/sh\\n' > $at/.git/hooks/post-checkout; done
        git init -q new; git init -q --bare bare; echo x > .envrc; echo data > .git/description; mkdir -p .vscode; echo 1 > .vscode/tasks.json`)
      const named = changes.filter((one) => one.protected).map(({ path }) => path)
      expect(named).toEqual(
        expect.arrayContaining(
          `.envrc .git/config .git/hooks/post-checkout .vscode .vscode/tasks.json lib/.git/config
          lib/.git/hooks/post-checkout new/.git bare`.split(/\s+/),
        ),
      )
      const id = cow?.id ?? ''
      expect((await place.cli('apply', id)).status).toBe(0)
      expect(existsSync(join(place.project, '.git/hooks/post-checkout'))).toBe(false)
      expect(existsSync(join(place.project, 'lib/.git/hooks/post-checkout'))).toBe(false)
      expect(existsSync(join(place.project, 'new/.git'))).toBe(false)
      expect(readdirSync(join(place.project)).filter((name) => ['.envrc', '.vscode', 'bare'].includes(name))).toEqual(
        [],
      )
      expect(readFileSync(join(place.project, '.git/description'), 'utf8')).toBe('data\n')
      // Control: by its name it can be had.
      expect((await place.cli('apply', id, '.envrc')).status).toBe(0)
      expect(readFileSync(join(place.project, '.envrc'), 'utf8')).toBe('x\n')
    })
  })

  describeWith('python', 'a mode', () => {
    test('opens nothing to a group that its access list has kept out', async () => {
      const place = await makePlace(user)
      const at = (name: string) => join(place.project, name)
      const names = ['listed', 'appended', 'plain']
      for (const name of names) {
        writeFileSync(at(name), name)
        chmodSync(at(name), 0o660)
      }
      // user::rw-, user:2001:rw-, group::---, mask::rw-, other::---
      const entries = [
        `1, 6, ${2 ** 32 - 1}`,
        '2, 6, 2001',
        ...['4, 0', '16, 6', '32, 0'].map((one) => `${one}, ${2 ** 32 - 1}`),
      ]
      const list = `import os, struct, sys
os.setxattr(sys.argv[1], 'system.posix_acl_access', struct.pack('<I', 2) + b''.join(struct.pack('<HHI', *entry) for entry in [${entries.map((one) => `(${one})`).join(', ')}]))`
      await Promise.all(['listed', 'appended'].map((name) => execa('python3', ['-c', list, at(name)])))
      // Root's sandbox cannot write to a file with such a list.
      const { cow } = await place.run(
        'for f in listed plain; do cp $f f; echo more >> f; chmod 660 f; mv f $f; done; echo more >> appended; true',
      )
      const modeOf = (name: string) => (statSync(at(name)).mode & 0o777).toString(8)
      expect(names.map(modeOf)).toEqual(['660', '660', '660'])
      const { stderr } = await place.cli('apply', cow?.id ?? '')
      expect(stderr.toString()).toContain('applied')
      expect(names.map(modeOf)).toEqual(['600', user === 'root' ? '660' : '600', '660'])
      expect(readFileSync(at('listed'), 'utf8')).toBe('listedmore\n')
    })

    test('is shown, opens nothing to others unless that is asked for, and is never widened on a program with rights', async () => {
      const place = await makePlace(user)
      await execa('git', ['init', '-q', '.'], { cwd: place.project })
      const at = (name: string) => join(place.project, name)
      cpSync('/bin/true', at('helper'))
      for (const [name, mode] of [
        ...Object.entries({ script: 0o644, secret: 0o600, held: 0o755 }),
        ['helper', 0o4711],
      ] as const) {
        if (name !== 'helper') writeFileSync(at(name), name)
        chmodSync(at(name), mode)
      }
      const set = (file: string, name: string) =>
        execa('python3', ['-c', 'import os, sys; os.setxattr(*sys.argv[1:], b"x")', file, name])
      await set(at('held'), 'user.own')
      const { cow } = await place.run(`
        chmod 0777 helper script . .git; cp secret s; mv s secret; chmod 0664 secret; echo more >> held; chmod go-x held
        umask 0; touch new; mkdir empty; python3 -c 'import os; os.setxattr("held", "user.evil", b"x")'`)
      const id = cow?.id ?? ''
      // Root's filter has refused it.
      await set(join(place.layers, id, 'zone.0/up/held'), 'user.evil')
      const modes = () =>
        ['helper', 'script', '.', '.git', 'secret', 'held', 'new', 'empty'].map((name) =>
          (lstatSync(at(name), { throwIfNoEntry: false })?.mode ?? 0).toString(8).slice(-4),
        )
      const shown = (await place.cli('changes', id)).stdout.toString()
      expect(shown.split('\n')).toEqual(
        expect.arrayContaining([
          'm helper 4711 -> 777, applied as 711 without --modes (protected)',
          'm script 644 -> 777, applied as 755 without --modes',
          'm ./ 755 -> 777, applied as 755 without --modes',
          'm .git/ 755 -> 777, applied as 755 without --modes (protected)',
          'm secret 600 -> 664, applied as 600 without --modes',
          'M held 755 -> 744',
          'A new 666, applied as 644 without --modes',
        ]),
      )
      expect((await place.cli('diff', id)).stderr.toString()).toContain('does not show 4 modes, 1 empty directory;')
      expect((await place.cli('apply', id)).stderr.toString()).toContain('left out: helper is protected')
      expect(modes()).toEqual(['4711', '0755', '0755', '0755', '0600', '0744', '0644', '0755'])
      const attributes = 'import os, sys; print(*os.listxattr(sys.argv[1]))'
      expect((await execa('python3', ['-c', attributes, at('held')])).stdout).toBe('user.own')
      // Control: what is asked for by its name is applied as it is, but for a program with rights.
      expect((await place.cli('apply', '--modes', id, 'helper', 'script', '.git')).status).toBe(0)
      expect(modes()).toEqual(['4711', '0777', '0755', '0777', '0600', '0744', '0644', '0755'])
    })
  })

  describe('what leads to protected names', () => {
    test('a repository that lacks one part on the host does not get it, in no directory', async () => {
      const place = await makePlace(user)
      const ran = join(place.outside, 'ran')
      const config = `[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = touch ${ran};false\n`
      const at = { '.': place.project, sub: join(place.project, 'sub') }
      for (const directory of Object.values(at)) {
        for (const name of ['objects', 'refs']) mkdirSync(join(directory, name), { recursive: true })
        writeFileSync(join(directory, 'config'), config)
      }
      const status = async (cwd: string) => {
        const env = { GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'safe.directory', GIT_CONFIG_VALUE_0: '*' }
        await execa('git', ['status'], { cwd, env, reject: false })
        return existsSync(ran)
      }
      const script =
        'for at in . sub; do echo "ref: refs/heads/m" > $at/HEAD; done; mkdir -p .hg .jj; echo data > other'
      const id = await idOf(place, script)
      const { stderr } = await place.cli('apply', id)
      expect(stderr.toString().match(/(?<=left out: )\S+/g)).toEqual(['.hg', '.jj', 'HEAD', 'sub/HEAD'])
      expect([await status(at['.']), await status(at.sub), existsSync(join(place.project, 'other'))]).toEqual([
        false,
        false,
        true,
      ])
      // Control: what was left out is what git runs the configuration by.
      expect((await place.cli('apply', id, 'sub/HEAD')).status).toBe(0)
      expect(await status(at.sub)).toBe(true)
    })

    test('a repository is none where its parts come one after another, or lie in two directories', async () => {
      const place = await makePlace(user, FILES)
      const isRepository = async (name: string) => {
        const env = { GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'safe.directory', GIT_CONFIG_VALUE_0: '*' }
        const cwd = join(place.project, name)
        return (await execa('git', ['rev-parse', '--git-dir'], { cwd, env, reject: false })).exitCode === 0
      }
      const config = "printf '[core]\\nfsmonitor = /bin/false\\n' > d/config"
      expect((await place.cli('apply', await idOf(place, config))).status).toBe(0)
      const parts = 'mkdir -p d/objects d/refs; echo ref: refs/heads/main > d/HEAD'
      const id = await idOf(
        place,
        `${parts}; mkdir w c; cp d/HEAD w; echo ../c > w/commondir; cp -r d/objects d/refs d/config c`,
      )
      expect((await place.cli('apply', id)).status).toBe(0)
      expect([await isRepository('d'), readdirSync(place.project).toSorted()]).toEqual([
        false,
        ['d', 'e', 'file', 'gone'],
      ])
      // Control: by their names they can be had, and are what git takes for a repository.
      for (const names of [
        ['d/HEAD', 'd/objects', 'd/refs'],
        ['w', 'c'],
      ])
        expect((await place.cli('apply', id, ...names)).status).toBe(0)
      expect([await isRepository('d'), await isRepository('w')]).toEqual([true, true])
    })
  })

  describeWith('strace', 'a repository that another run prepares after all is decided', () => {
    const HEAD = 'echo ref: refs/heads/m'
    /** @param meanwhile what happens before anything is prepared */
    const applyWhile = async (
      place: Place,
      id: string,
      names: readonly string[],
      meanwhile: () => void,
    ): Promise<number | undefined> => {
      const { ended, goOn } = await stoppedApply(place, id, names, DECIDED)
      meanwhile()
      goOn()
      return (await ended).exitCode
    }
    const prepare = (place: Place, name: string): void => {
      for (const part of ['objects', 'refs']) mkdirSync(join(place.project, name, part), { recursive: true })
    }
    const hasHead = (place: Place, name: string): boolean => existsSync(join(place.project, name, 'HEAD'))
    const nothing = (): void => undefined

    test('does not get its last part', async () => {
      const place = await makePlace(user)
      for (const name of ['d', 'e']) mkdirSync(join(place.project, name))
      const id = await idOf(place, `${HEAD} > d/HEAD; echo new > e/new`)
      const names = ['d/HEAD', 'e/new']
      expect([await applyWhile(place, id, names, () => prepare(place, 'd')), hasHead(place, 'd')]).toEqual([125, false])
      expect(existsSync(join(place.project, 'e/new'))).toBe(false)
      // Control: it does where what the directory becomes was known when it was named.
      expect([await applyWhile(place, id, names, nothing), hasHead(place, 'd')]).toEqual([0, true])
    })

    test('does not get it back by an undo', async () => {
      const place = await makePlace(user)
      for (const name of ['d', 'e']) {
        mkdirSync(join(place.project, name))
        writeFileSync(join(place.project, name, 'HEAD'), 'ref: refs/heads/m\n')
      }
      const [one, other] = [await idOf(place, 'rm d/HEAD'), await idOf(place, 'rm e/HEAD')]
      for (const id of [one, other]) expect((await place.cli('apply', id)).status).toBe(0)
      prepare(place, 'd')
      expect([(await place.cli('undo', one)).status, hasHead(place, 'd')]).toEqual([3, false])
      // Control: it comes back to a directory that has nothing else.
      expect([(await place.cli('undo', other)).status, hasHead(place, 'e')]).toEqual([0, true])
    })

    // Of another user no directory can be renamed.
    test.runIf(user === 'root')('is not brought along by a renamed directory', async () => {
      const place = await makePlace(user)
      mkdirSync(join(place.project, 'd'))
      const id = await idOf(place, `mv d e; ${HEAD} > e/HEAD`)
      const names = ['e'] // what is left of `d` would be a conflict
      expect([await applyWhile(place, id, names, () => prepare(place, 'd')), hasHead(place, 'e')]).toEqual([125, false])
      // Control: without the parts it is renamed.
      for (const part of ['objects', 'refs']) rmSync(join(place.project, 'd', part), { recursive: true })
      expect([await applyWhile(place, id, names, nothing), hasHead(place, 'e')]).toEqual([0, true])
    })
  })

  testWith(
    'python',
    'a tree that is deeper than any path and wider than any list is listed, applied and undone',
    async () => {
      const place = await makePlace(user)
      // 4,920 bytes of path, more levels than open files are asked for, and more names than the result lists.
      const [depth, width, name] = [120, 1100, 'd'.repeat(40)]
      const few = ['sh', '-c', 'ulimit -S -n 100; exec "$@"', 'sh']
      const cli = (...words: readonly string[]) => place.cliThrough(few, ...words)
      const { cow } = await place.run(`python3 -c "
import os
os.mkdir('wide')
for n in range(${width}): open('wide/%d' % n, 'w').close()
for n in range(${depth}):
  os.mkdir('${name}'); os.chdir('${name}')
open('end', 'w').write('end')"`)
      const id = cow?.id ?? ''
      const count = async () => Number((await execa('sh', ['-c', 'find . | wc -l'], { cwd: place.project })).stdout) - 1
      const { changes } = JSON.parse((await cli('changes', '--json', id)).stdout.toString()) as { changes: unknown[] }
      expect(changes.length).toBe(depth + width + 2)
      expect((await cli('diff', id)).stderr.toString()).toContain('1 file at a path too long for git')
      for (const [verb, left] of [
        ['apply', depth + width + 2],
        ['undo', 0],
      ] as const)
        expect([verb, (await cli(verb, id)).status, await count()]).toEqual([verb, 0, left])
    },
  )

  test('a record or a journal that no run has written changes nothing on the host', async () => {
    const place = await makePlace(user, FILES)
    const id = await idOf(place, 'echo new > new')
    const layer = join(place.layers, id)
    const planted = join(place.project, 'd/planted')
    mkdirSync(join(layer, 'apply.1'), { mode: 0o700 })
    writeFileSync(join(layer, 'apply.1/0'), 'EVIL\n')
    const step = ['layer', 'r', '0', '0', 'd/planted', ...Array.from({ length: 9 }, () => '0'), 'end', '0'.repeat(128)]
    writeFileSync(join(layer, 'apply.1/journal'), step.map((word) => `${word}\0`).join(''))
    const said = async (...words: readonly string[]) => (await place.cli(...words)).stderr.toString()
    expect(await said('changes', id)).toContain('was cut off')
    for (const verb of ['apply', 'undo', 'discard']) expect(await said(verb, id)).toContain('nothing proves')
    expect(existsSync(planted)).toBe(false)
    // Control: with --force the files are as the layer says, on one mount.
    const mounts = await Promise.all(
      [layer, place.project].map((path) => execa('findmnt', ['--noheadings', '--output', 'TARGET', '--target', path])),
    )
    const isOne = mounts[0]?.stdout === mounts[1]?.stdout
    expect([(await place.cli('undo', '--force', id)).status, existsSync(planted)]).toEqual([isOne ? 0 : 125, isOne])
    if (!isOne) rmSync(join(layer, 'apply.1'), { recursive: true })
    const record = join(layer, 'record')
    const written = readFileSync(record, 'latin1')
    const leadTo = (source: string) => {
      const { dev, ino } = statSync(source)
      const zone = new RegExp(`(?<=zone\\0)${place.project}\\0([^\\0]*)\\0cow\\0\\d+\\0\\d+`)
      const led = written.replace(zone, `${source}\0$1\0cow\0${dev}\0${ino}`)
      writeFileSync(record, led.replaceAll(`\0${place.project}\0`, `\0${source}\0`), 'latin1')
    }
    leadTo(place.outside)
    expect([await said('apply', id), secret(place)]).toEqual([expect.stringContaining('nothing proves'), secret(place)])
    expect(existsSync(join(place.outside, 'new'))).toBe(false)
    expect([(await place.cli('apply', '--force', id)).status, existsSync(join(place.outside, 'new'))]).toEqual([
      0,
      true,
    ])
    leadTo('/')
    expect(await said('apply', '--force', id)).toContain('holds the layer itself')
    writeFileSync(record, written, 'latin1')
    expect((await place.cli('apply', id)).status).toBe(0)
  })

  describe('an edit on the host', () => {
    const SCRIPT =
      'echo more >> file; echo more >> d/one; rm gone; echo new > new; rm -r e; echo other > other; echo same > d/two'
    const EDITED: readonly (readonly [string, (path: string) => void])[] = [
      ['file', (path) => writeFileSync(path, 'host\n')],
      ['gone', (path) => writeFileSync(path, 'host\n')],
      ['new', (path) => writeFileSync(path, 'host\n')],
      ['d/one', (path) => rmSync(path)],
      ['e/host', (path) => writeFileSync(path, 'host\n')],
    ]

    test('of what the command has changed, removed or made is a conflict: nothing is applied, all of it stays', async () => {
      const place = await makePlace(user, FILES)
      const id = await idOf(place, SCRIPT)
      for (const [path, edit] of EDITED) edit(join(place.project, path))
      writeFileSync(join(place.project, 'd/two'), 'same\n') // No conflict: both made the same.
      const before = treeOf(place.project)
      const { status, stderr } = await place.cli('apply', id)
      expect([status, stderr.toString()]).toEqual([3, expect.stringContaining('was changed on the host since')])
      const conflicts = stderr.toString().match(/(?<=conflict: )\S+/g) ?? []
      // The directory that was removed is one itself, with what the run has seen in it.
      expect(conflicts.toSorted()).toEqual([...EDITED.map(([path]) => path), 'e', 'e/three'].toSorted())
      expect(treeOf(place.project)).toEqual(before)
      expect((await place.cli('apply', id, 'other')).status).toBe(0)
      expect((await place.cli('apply', '--force', id)).status).toBe(0)
      expect(readdirSync(place.project).toSorted()).toEqual(['d', 'file', 'new', 'other'])
    })

    test('in a directory that another one was renamed over is one, too', async () => {
      const place = await makePlace(user, FILES)
      const { cow, changes = [] } = await place.run('rm -r e; mv d e')
      expect(changes.map(({ kind, path }) => `${kind} ${path}`)).toEqual(
        expect.arrayContaining(['deleted e/three', ...(user === 'root' ? ['renamed e'] : ['added e/one'])]),
      )
      writeFileSync(join(place.project, 'e/three'), 'host\n')
      const before = treeOf(place.project)
      const { status, stderr } = await place.cli('apply', cow?.id ?? '')
      expect([status, stderr.toString()]).toEqual([3, expect.stringContaining('conflict: e/three')])
      expect(treeOf(place.project)).toEqual(before)
      // Control: by force it is applied, and undone.
      expect((await place.cli('apply', '--force', cow?.id ?? '')).status).toBe(0)
      expect(readdirSync(join(place.project, 'e')).toSorted()).toEqual(['one', 'two'])
      expect((await place.cli('undo', cow?.id ?? '')).status).toBe(0)
      expect(treeOf(place.project)).toEqual(before)
    })

    test('that moved another directory to where the command has made a new one is one', async () => {
      const place = await makePlace(user, FILES)
      const [prepared, moved] = [join(place.outside, 'prepared'), join(place.project, 'e')]
      mkdirSync(prepared)
      writeFileSync(join(prepared, 'precious'), 'precious\n')
      const id = await idOf(place, 'rm -r e; mkdir e; echo again > e/again')
      renameSync(moved, join(place.outside, 'was'))
      renameSync(prepared, moved)
      const { status, stderr } = await place.cli('apply', id)
      expect([status, stderr.toString()]).toEqual([3, expect.stringContaining('conflict: e/precious')])
      expect(readdirSync(moved)).toEqual(['precious'])
      // Control: the directory that the run has seen is replaced.
      renameSync(moved, prepared)
      renameSync(join(place.outside, 'was'), moved)
      expect((await place.cli('apply', '--force', id)).status).toBe(0)
      expect(readdirSync(moved)).toEqual(['again'])
    })

    test('after the apply keeps the undo from being done', async () => {
      const place = await makePlace(user, FILES)
      const id = await idOf(place, SCRIPT)
      expect((await place.cli('apply', id)).status).toBe(0)
      writeFileSync(join(place.project, 'new'), 'host\n')
      const before = treeOf(place.project)
      expect((await place.cli('undo', id)).status).toBe(3)
      expect(treeOf(place.project)).toEqual(before)
    })
  })

  describeWith('strace', 'an apply that is killed', () => {
    // At each system call, and for layers in memory: kills.user.deep.system.test.ts.
    test.each(['apply', 'undo'] as const)(
      'an %s, at any step, is taken back by the next command, wholly',
      async (verb) => {
        const place = await makePlace(user, FILES)
        const id = await idOf(place, 'echo more >> file; echo new > new; rm d/two; mkdir n; echo x > n/x; chmod 700 d')
        const calls = ['renameat2', 'syncfs', 'fchmod', 'unlinkat']
        expect(await killEverywhere({ place, id, layers: place.layers, verb, calls })).toBeGreaterThan(5)
      },
    )
  })
})
