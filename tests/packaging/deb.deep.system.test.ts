/** The package for Debian and Ubuntu: the same bytes twice, and what it unpacks works. */
import { existsSync } from 'node:fs'
import { copyFile, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { checkoutFor, currentUser } from '../support/users.ts'
import { nodePackage } from './node-package.ts'

const CHECKOUT = checkoutFor(currentUser())

/** A build at a time that is given. */
async function built(file: string): Promise<string> {
  await execa('make', ['-C', CHECKOUT, 'deb', `DEB=${file}`, 'SOURCE_DATE_EPOCH=1000000000'])
  return file
}

describeWith(['dpkg-deb', 'userns'], 'make deb', () => {
  test("makes the same bytes twice, of files that are root's and that nobody else can change", async () => {
    const directory = await temporaryDirectory()
    const first = await built(join(directory, 'first.deb'))
    const second = await built(join(directory, 'second.deb'))
    expect((await readFile(first)).equals(await readFile(second))).toBe(true)
    const { stdout } = await execa('dpkg-deb', ['-c', first])
    const wrong = stdout.split('\n').filter((line) => !/^(d|-|h)rw.r-.r-. root\/root |^l.* root\/root /.test(line))
    expect(wrong).toEqual([])
    const names = stdout.split('\n').map((line) => line.split(/ +/)[5])
    expect(names).toEqual(
      expect.arrayContaining([
        './usr/bin/llm-do-exec',
        './usr/lib/llm-do-exec/apparmor',
        './usr/share/man/man1/llm-do.1.gz',
        './usr/share/bash-completion/completions/llm-do',
        './usr/share/zsh/vendor-completions/_llm-do',
        './usr/share/fish/vendor_completions.d/llm-do.fish',
      ]),
    )
    expect(names.filter((name) => /node-path|compiled$/.test(name ?? ''))).toEqual([])
    expect((await execa('dpkg-deb', ['-f', first, 'Depends'])).stdout).toBe('nodejs (>= 20.19)')
  })
})

/** A root directory with the programs of scripts and this node, the latter as a package: what ours depends on. */
async function newRoot(): Promise<string> {
  const root = await temporaryDirectory({ mode: 0o755 })
  for (const directory of ['bin', 'usr/bin', 'tmp', 'dev', 'proc', 'etc', 'var/lib/dpkg/info', 'var/lib/dpkg/updates'])
    await mkdir(join(root, directory), { recursive: true })
  await writeFile(join(root, 'var/lib/dpkg/status'), '')
  await copyFile('/bin/busybox', join(root, 'bin/busybox'))
  for (const name of ['sh', 'rm']) await symlink('busybox', join(root, 'bin', name))
  const { stdout } = await execa('ldd', [process.execPath, '/usr/bin/install'])
  const libraries = new Set(stdout.match(/\/\S+\.so[.\d]*(?= \()/g))
  for (const file of ['/usr/bin/install', ...libraries]) await execa('cp', ['-L', '--parents', file, root])
  await nodePackage(join(root, 'tmp/node.deb'))
  return root
}

describeWith(['root', 'dpkg-deb'], 'dpkg', () => {
  test.each([
    ['AppArmor with these words', true],
    ['none', false],
  ])('installs it and removes all of it, where there is %s', async (_, hasAppArmor) => {
    const root = await newRoot()
    // With the /proc that every installed system has.
    const withProc = (...words: readonly string[]) =>
      execa('unshare', ['--mount', 'sh', '-c', 'mount -t proc proc "$0/proc" && exec "$@"', root, ...words], {
        env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
        extendEnv: false,
      })
    const dpkg = (...words: readonly string[]) => withProc('dpkg', '--root', root, ...words)
    // /run, where the first call made the directory of its records, is emptied at each boot.
    const words = ['usr', 'etc', 'var', '-name', '*llm-do*', '!', '-path', '*/dpkg/*']
    const find = async () => (await execa('find', words, { cwd: root })).stdout
    if (hasAppArmor) await mkdir(join(root, 'etc/apparmor.d/abi/4.0'), { recursive: true })
    const file = join(root, 'tmp/ours.deb')
    await execa('make', ['-C', CHECKOUT, 'deb', `DEB=${file}`])
    await dpkg('-i', join(root, 'tmp/node.deb'), file)
    const { stdout } = await withProc('chroot', root, '/usr/bin/llm-do', '--version')
    expect(stdout).toMatch(/\d+\.\d+\.\d+/)
    expect((await withProc('chroot', root, '/usr/bin/llm-do', 'profiles')).stdout, 'by node').toContain('strict')
    const compiled = await execa('find', [join(root, 'usr/lib/llm-do-exec/dist'), '-name', 'program-*.compiled'])
    expect(compiled.stdout, 'postinst had node').not.toBe('')
    const found = await find()
    for (const one of ['man/man1/llm-do.1.gz', 'bash-completion/completions/llm-do', 'vendor-completions/_llm-do'])
      expect(found).toContain(one)
    expect(existsSync(join(root, 'etc/apparmor.d/llm-do'))).toBe(hasAppArmor)
    await dpkg('--purge', 'llm-do-exec')
    expect(await find()).toBe('')
  })
})
