/** Follows a hint: takes it from the output, does it, and then the command succeeds, or the refusal is gone. */
import { mkdir } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { execa } from 'execa'
import { expect } from 'vitest'
import { newDirectory } from '../support/directory.ts'
import { becoming, checkoutFor, currentUser, PLAIN_ID, type User } from '../support/users.ts'
import { addFlags } from './follow.ts'
import type { Row } from './rows.ts'

interface Ran {
  readonly script: string
  readonly status: number | undefined
  readonly output: string
}

interface Site {
  readonly user: User
  readonly directory: string
  /** Mounts of a row are made in a new namespace, again for each run. */
  readonly mounts: string | undefined
}

async function run(script: string, { user, directory, mounts }: Site): Promise<Ran> {
  const around = mounts === undefined || user !== 'root' ? [] : ['unshare', '--mount', '--propagation', 'private']
  const [file = '', ...words] = [
    ...becoming(user),
    ...around,
    'bash',
    '-c',
    `${around.length === 0 ? ':' : mounts}\n${script}`,
  ]
  const { all, exitCode } = await execa(file, words, {
    cwd: join(directory, 'work'),
    env: {
      PATH: [join(checkoutFor(user), 'bin'), process.env.PATH ?? '', '/usr/sbin:/sbin'].join(delimiter),
      HOME: join(directory, 'home'),
      LANG: 'C.UTF-8',
      CHECKOUT: checkoutFor(user),
    },
    extendEnv: false,
    all: true,
    stdin: 'ignore',
    reject: false,
  })
  return { script, status: exitCode, output: all }
}

/** Layers of root are not below its home. */
const DISCARD = `llm-do ps --cow | awk -v here="$PWD" 'index($4, here) == 1 { print $1 }' | xargs --no-run-if-empty llm-do discard`

export async function follow(
  { make = ':', mounts, provoke, said, code, follow: how = addFlags, shows = /(?:)/, gone }: Row,
  user: User,
): Promise<void> {
  const { path: directory, remove } = await newDirectory({ owner: user, mode: 0o755 })
  try {
    const site = { user, directory, mounts }
    for (const name of ['work', 'home']) await mkdir(join(directory, name))
    if (user !== currentUser()) await execa('chown', ['-R', `${PLAIN_ID}:${PLAIN_ID}`, directory])
    const made = await run(`set -e; ${make}`, { ...site, mounts: undefined })
    expect(made).toMatchObject({ status: 0 })
    const refused = await run(provoke, site)
    expect(refused).toMatchObject({ output: expect.stringMatching(said) })
    if (code !== undefined) expect(refused.output).toContain(`error ${code}: `)
    if (gone === undefined) expect(refused.status).not.toBe(0)
    const hint = said.exec(refused.output)?.[1] ?? ''
    const followed = await run(how(provoke, hint), site)
    expect({ ...followed, hint }).toMatchObject({
      output: expect.stringMatching(shows),
      ...(gone === undefined && { status: 0 }),
    })
    if (gone !== undefined) expect({ ...followed, isGone: !gone.test(followed.output) }).toMatchObject({ isGone: true })
  } finally {
    if (provoke.includes('--cow')) await run(DISCARD, { user, directory, mounts: undefined })
    await execa('chmod', ['-R', 'u+rwX', directory], { reject: false })
    await remove()
  }
}
