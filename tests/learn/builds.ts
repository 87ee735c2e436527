/** Shared by the tests of `llm-do learn`: the lessons of a command. */
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect } from 'vitest'
import { parse, stringify } from 'yaml'
import { textHere } from '../real/in-process.ts'
import { runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'

/** The command runs in `app`; `data` is next to it. */
export async function makePlace(files: Readonly<Record<string, string>>): Promise<string> {
  const place = await temporaryDirectory()
  await mkdir(join(place, 'app'))
  await mkdir(join(place, 'data'))
  await writeFile(join(place, 'data/words'), 'two words\n')
  for (const [name, text] of Object.entries(files)) {
    await mkdir(join(place, 'app', name, '..'), { recursive: true })
    await writeFile(join(place, 'app', name), text.replaceAll('PLACE', place))
  }
  await execa('git', ['init', '-q', join(place, 'app')])
  return place
}

export const at = (place: string) => ({ cwd: join(place, 'app'), env: { HOME: place } })
export const learn = (place: string, words: readonly string[]) =>
  runCli(['learn', ...words], { ...at(place), program: 'llm-do' })

export interface Row {
  readonly what: string
  readonly files: Readonly<Record<string, string>>
  readonly command: readonly string[]
  /** Keys of the profile except limits. */
  readonly learns: (place: string) => object
}

export const reading = (place: string) => ({ zones: [{ mode: 'ro', hostPath: join(place, 'data/words') }] })

export const policyOf = (text: string) => (parse(text) as { sandbox: Record<string, unknown> }).sandbox

/** The profile is enough for the command, and without one of its lines the command fails. */
export async function expectEnough({ files, command, learns }: Row): Promise<void> {
  const place = await makePlace(files)
  const before = await readdir(join(place, 'app'))
  const learned = await learn(place, ['--', ...command])
  const text = learned.stdout.toString()
  expect({ status: learned.status, text, stderr: learned.stderr.toString() }).toMatchObject({ status: 0 })
  expect(await readdir(join(place, 'app'))).toEqual(before)

  const { extends: base, resources, ...rest } = policyOf(text)
  expect({ resources, ...rest }).toEqual({ resources: expect.anything(), ...learns(place) })
  expect(base).toBe('default')

  const profile = join(place, 'learned.yaml')
  const run = async (sandbox: object) => {
    await writeFile(profile, stringify({ sandbox }))
    return (await textHere(['--profile', profile, '--', ...command], at(place))).status
  }
  for (const key of ['zones', 'workspace'].filter((key) => key in rest && !(key === 'workspace' && 'zones' in rest)))
    expect({ key, status: await run({ ...policyOf(text), [key]: undefined }) }).not.toMatchObject({ status: 0 })
  expect(await run(policyOf(text))).toBe(0)
}
