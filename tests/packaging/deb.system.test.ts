/** The package for Debian and Ubuntu: the same bytes twice, and what it unpacks works. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { checkoutFor, currentUser } from '../support/users.ts'

const CHECKOUT = checkoutFor(currentUser())

/** Two builds, one second apart for the files and at one time for the package. */
async function built(directory: string): Promise<readonly string[]> {
  const files = ['first.deb', 'second.deb'].map((name) => join(directory, name))
  for (const file of files) await execa('make', ['-C', CHECKOUT, 'deb', `DEB=${file}`, 'SOURCE_DATE_EPOCH=1000000000'])
  return files
}

describeWith(['dpkg-deb', 'userns'], 'make deb', () => {
  test("makes the same bytes twice, of files that are root's and that nobody else can change", async () => {
    const [first = '', second = ''] = await built(await temporaryDirectory())
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

  test('what it unpacks runs', async () => {
    const directory = await temporaryDirectory({ mode: 0o755 })
    const [file = ''] = await built(directory)
    await execa('dpkg-deb', ['-x', file, join(directory, 'root')])
    const options = { cwd: directory, env: { PATH: process.env.PATH, HOME: directory }, extendEnv: false }
    const run = await execa(join(directory, 'root/usr/bin/llm-do'), ['exec', '--', 'echo', 'inside'], options)
    expect(run.stdout).toBe('inside')
  })
})

test.each(['postinst', 'prerm', 'postrm'])('its %s is a program of the shell', async (name) => {
  await execa('sh', ['-n', join(CHECKOUT, 'packaging/deb', name)])
})
