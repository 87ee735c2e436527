/** The wheel and the source archive of the Python client. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { checkoutFor, currentUser } from '../support/users.ts'

const CHECKOUT = checkoutFor(currentUser())
const { version } = JSON.parse(readFileSync(join(CHECKOUT, 'package.json'), 'utf8'))

async function made(umask: string): Promise<string> {
  const directory = join(await temporaryDirectory({ mode: 0o755 }), 'made')
  const script = `umask ${umask} && exec "$0" ${directory}`
  const env = { SOURCE_DATE_EPOCH: '1000000000' }
  await execa('sh', ['-c', script, join(CHECKOUT, 'packaging/make-python')], { cwd: '/', env })
  return directory
}

describeWith(['userns', 'python'], 'packaging/make-python', () => {
  test('makes the same bytes twice, of the version of the program', async () => {
    const [first, second] = [await made('022'), await made('077')]
    const names = [`llm_do_exec-${version}-py3-none-any.whl`, `llm_do_exec-${version}.tar.gz`]
    expect(readdirSync(first).toSorted()).toEqual(names)
    for (const name of names)
      expect(readFileSync(join(first, name)).equals(readFileSync(join(second, name)))).toBe(true)
  })

  test('makes a wheel that pip installs, and that runs the program of PATH', async () => {
    const [place, directory] = [await temporaryDirectory({ mode: 0o755 }), await made('022')]
    await execa('/usr/bin/python3', ['-m', 'venv', place])
    const python = join(place, 'bin/python')
    const wheel = join(directory, `llm_do_exec-${version}-py3-none-any.whl`)
    await execa(python, ['-m', 'pip', 'install', '--quiet', '--no-index', wheel])
    const use = 'import llm_do_exec; print(llm_do_exec.__file__, llm_do_exec.run(["echo", "inside"]).stdout)'
    const env = { PATH: `${join(CHECKOUT, 'bin')}:${process.env.PATH}` }
    const { stdout } = await execa(python, ['-c', use], { cwd: place, env })
    expect(stdout).toMatch(new RegExp(`^${place}/.*/llm_do_exec/__init__.py inside`))
    const listed = (await execa(python, ['-m', 'pip', 'show', '--files', 'llm-do-exec'])).stdout
    expect(listed).toMatch(/llm_do_exec\/py\.typed/)
  })
})
